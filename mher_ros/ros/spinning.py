"""A node that is answered for in the background."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import sys
import threading

from mher_ros.ros.process import StopRequest
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

__all__ = ['spinning']


@contextlib.contextmanager
def spinning(node: Node, stop: StopRequest | None = None) -> Iterator[None]:
    """
    Answer services, parameters and timers of ``node`` in a thread of its own meanwhile.

    If one of them breaks, the others are no longer answered either: ``stop`` is told.
    """
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    over = threading.Event()

    def spin() -> None:
        try:
            while node.context.ok() and not over.is_set():
                executor.spin_once()
        except ExternalShutdownException:
            pass
        except Exception:
            sys.excepthook(*sys.exc_info())
            if stop is not None:
                stop.fail()

    thread = threading.Thread(target=spin, name='executor', daemon=True)
    thread.start()
    try:
        yield
    finally:
        # In this order: rclpy's shutdown takes away what a spin that is about to wait still needs.
        over.set()
        executor.create_task(lambda: None)  # wakes it
        thread.join(2.0)
        executor.shutdown(timeout_sec=2.0)
        node.destroy_node()
