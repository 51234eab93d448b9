"""A node as a process; few imports precede the signal handlers, so that it can end early."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Run = Callable[['StopRequest'], None]

FAILED, WRONG_USE = 1, 2
FOLDERS = {'policy_node': 'deploy', 'sim_node': 'sim', 'train_node': 'train', 'view_node': 'web'}
STOPPING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class StopRequest:
    """A request to stop, by a signal or a service; repeating it changes nothing."""

    def __init__(self) -> None:
        # No threading.Event: its lock could block a second signal during the first one.
        self._asked = False
        self.failed = False  # whether the reason is a failure

    def __call__(self) -> bool:
        return self._asked

    def ask(self, *_: Any) -> None:
        """Request a stop; also usable as a signal handler."""
        self._asked = True

    def fail(self) -> None:
        """Request a stop because of a failure."""
        self.failed = True
        self._asked = True


def run_process(name: str, arguments: Sequence[str] | None = None, run: Run | None = None) -> int:
    """Start ROS, call ``run`` (default: that of the node), and return the exit code."""
    # SIGINT, SIGTERM and SIGHUP only request a stop, so that the node can finish its work. Before
    # ``run`` they end the process at once: imports take seconds.
    stop, arguments = StopRequest(), sys.argv if arguments is None else arguments
    on_signals(_leave)
    from mher_ros.errors import explaining_missing_extras, MherError
    from mher_ros.options import OptionError

    try:
        with explaining_missing_extras():
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
        # Python removes handlers at its end: a second Ctrl-C would then kill a node that has
        # ended well, and look like a failure.
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)
        # Skip the last garbage collection, which takes view_node seconds on a busy machine.
        gc.freeze()


policy_node, sim_node, train_node, view_node = (
    functools.partial(run_process, name) for name in FOLDERS
)
"""Entry points of setup.py."""


def on_signals(handler: Callable[..., Any]) -> dict[signal.Signals, Any]:
    """Handle the signals that stop a process; return the former handlers."""
    # nohup ignores SIGHUP.
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return {one: signal.signal(one, handler) for one in STOPPING[: 2 if is_ignored else 3]}


def _leave(*_: Any) -> None:
    os._exit(0)


def _run(name: str, arguments: Sequence[str], stop: StopRequest, run: Run | None) -> None:
    from mher_ros.options import OptionError
    from mher_ros.ros.bringup.node_spec import loopback_profile
    import rclpy
    from rclpy.signals import SignalHandlerOptions
    from rclpy.utilities import try_shutdown

    _refuse_others(arguments)
    run = run or import_node(name).run
    on_signals(stop.ask)
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


def import_node(name: str) -> Any:
    if name in ('policy_node', 'view_node'):
        # They render nothing, and MuJoCo starts faster without a renderer.
        os.environ.setdefault('MUJOCO_GL', 'disable')
    return importlib.import_module(f'mher_ros.ros.{FOLDERS[name]}.{name}')


def _refuse_others(arguments: Sequence[str]) -> None:
    """Raise OptionError for a word outside of ``--ros-args``: nodes have no other arguments."""
    from mher_ros.options import OptionError

    is_ros = False
    for word in arguments[1:]:
        if word in ('--ros-args', '--'):
            is_ros = word == '--ros-args'
        elif not is_ros:
            # rcl would read `robot:=x` as a remapping.
            raise OptionError(f'arguments come after --ros-args (-p name:=value), got {word!r}')
