"""A node as a process: start, signals, exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import signal
import sys
import threading
from typing import Any

from mher_ros.errors import MherError
from mher_ros.options import OptionError
import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown

__all__ = ['run_process', 'spinning', 'StopRequest']

FAILED, WRONG_USE = 1, 2


class StopRequest:
    """The wish to stop, by a signal or a service; asking for it again changes nothing."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def __call__(self) -> bool:
        """Return whether somebody has asked."""
        return self._event.is_set()

    def ask(self, *_: Any) -> None:
        """Ask, also as the handler of a signal."""
        self._event.set()


def run_process(
    name: str, run: Callable[[StopRequest], int | None], arguments: Sequence[str] | None = None
) -> int:
    """
    Start ROS, run until ``run`` returns, end ROS and return the exit code.

    SIGINT and SIGTERM only tell ``run`` to stop, which so can finish what it has begun.
    """
    stop = StopRequest()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop.ask)
    try:
        rclpy.init(
            args=list(sys.argv if arguments is None else arguments),
            signal_handler_options=SignalHandlerOptions.NO,
        )
        return run(stop) or 0
    except MherError as error:
        print(f'{name}: {error}', file=sys.stderr, flush=True)
        return WRONG_USE if isinstance(error, OptionError) else FAILED
    except OSError as error:
        where = f' ({error.filename})' if error.filename else ''
        print(f'{name}: {error.strerror or error}{where}', file=sys.stderr, flush=True)
        return FAILED
    finally:
        try_shutdown()


@contextlib.contextmanager
def spinning(node: Node) -> Iterator[None]:
    """Answer services, parameters and timers of ``node`` in a thread of its own meanwhile."""
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)

    def spin() -> None:
        try:
            executor.spin()
        except ExternalShutdownException:
            pass
        except Exception:
            # Nothing of the node works without its executor: end the process, loudly.
            sys.excepthook(*sys.exc_info())
            os._exit(FAILED)

    thread = threading.Thread(target=spin, name='executor', daemon=True)
    thread.start()
    try:
        yield
    finally:
        executor.shutdown(timeout_sec=2.0)
        thread.join(2.0)
        node.destroy_node()
