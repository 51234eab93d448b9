"""
A node as a process: start, signals, exit code.

Hardly anything is imported before signals are handled: a node that is stopped while it starts ends
as cleanly as any other.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ['policy_node', 'run_process', 'sim_node', 'StopRequest', 'train_node', 'view_node']

FAILED, WRONG_USE = 1, 2
STOPPING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class StopRequest:
    """The wish to stop, by a signal or a service; asking for it again changes nothing."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.failed = False
        """Whether it is because something broke."""

    def __call__(self) -> bool:
        """Return whether somebody has asked."""
        return self._event.is_set()

    def ask(self, *_: Any) -> None:
        """Ask, also as the handler of a signal."""
        self._event.set()

    def fail(self) -> None:
        """Ask because something broke."""
        self.failed = True
        self._event.set()


def policy_node() -> int:
    """Run policy_node."""
    return run_process('policy_node', sys.argv)


def sim_node() -> int:
    """Run sim_node."""
    return run_process('sim_node', sys.argv)


def train_node() -> int:
    """Run train_node."""
    return run_process('train_node', sys.argv)


def view_node() -> int:
    """Run view_node."""
    return run_process('view_node', sys.argv)


def run_process(
    name: str, arguments: Sequence[str], run: Callable[[StopRequest], None] | None = None
) -> int:
    """
    Start ROS, call ``run``, and return the exit code; default: that of ``mher_ros.ros.NAME``.

    SIGINT, SIGTERM and SIGHUP only tell it to stop, so that it can finish what it has begun.
    Before it has begun anything they end it at once: what is imported takes seconds.
    """
    stop = StopRequest()
    _on_signals(_leave)
    from mher_ros.errors import MherError
    from mher_ros.options import OptionError

    try:
        _run(name, arguments, stop, run)
        return FAILED if stop.failed else 0
    except MherError as error:
        print(f'{name}: {error}', file=sys.stderr, flush=True)
        return WRONG_USE if isinstance(error, OptionError) else FAILED
    except OSError as error:
        where = f' ({error.filename})' if error.filename else ''
        print(f'{name}: {error.strerror or error}{where}', file=sys.stderr, flush=True)
        return FAILED
    finally:
        # What is left is the end of Python, which takes handlers away: Ctrl-C pressed twice would
        # kill a node that has ended well, and look like a failure.
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        # Python looks for cycles among all objects once more, which takes view_node seconds on a
        # busy machine, and frees nothing that the end of the process does not.
        gc.freeze()


def _on_signals(handler: Callable[..., Any]) -> None:
    for number in STOPPING:
        # Who lets a node outlive its terminal has SIGHUP ignored.
        if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP:
            signal.signal(number, handler)


def _leave(*_: Any) -> None:
    os._exit(0)


def _run(
    name: str,
    arguments: Sequence[str],
    stop: StopRequest,
    run: Callable[[StopRequest], None] | None,
) -> None:
    from mher_ros.options import OptionError
    from mher_ros.ros.loopback import loopback_profile
    import rclpy
    from rclpy.signals import SignalHandlerOptions
    from rclpy.utilities import try_shutdown

    _refuse_others(arguments)
    if name in ('policy_node', 'view_node'):
        # They draw no pictures themselves, and MuJoCo starts sooner without what draws.
        os.environ.setdefault('MUJOCO_GL', 'disable')
    run = run or importlib.import_module(f'mher_ros.ros.{name}').run
    _on_signals(stop.ask)
    os.environ.update(loopback_profile(os.environ))
    try:
        rclpy.init(args=list(arguments), signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        raise OptionError(str(error).splitlines()[0]) from error
    try:
        if not stop():
            run(stop)
    finally:
        try_shutdown()


def _refuse_others(arguments: Sequence[str]) -> None:
    """Raise OptionError for a word outside of ``--ros-args``, where a node has no arguments."""
    from mher_ros.options import OptionError

    is_ros = False
    for word in arguments[1:]:
        if word in ('--ros-args', '--'):
            is_ros = word == '--ros-args'
        elif not is_ros:
            # rcl would take `robot:=x` for the new name of a topic.
            raise OptionError(f'arguments come after --ros-args (-p name:=value), got {word!r}')
