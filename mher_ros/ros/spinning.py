"""A node that is answered for in the background."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
import contextlib
import sys
import threading
from typing import Any

from mher_ros.ros.malformed import count_malformed
from mher_ros.ros.process import StopRequest
from mher_ros.ros.wire import deserialise, MOST_BYTES_OF_ANY
from rclpy.exceptions import InvalidHandle
from rclpy.executors import (
    await_or_execute,
    ExternalShutdownException,
    SingleThreadedExecutor,
)
from rclpy.node import Node
from rclpy.subscription import Subscription

__all__ = ['NodeExecutor', 'spinning']

Take = Callable[[Any], Any]


class NodeExecutor(SingleThreadedExecutor):
    """
    An executor that goes on after a message that cannot be read, and counts it.

    rclpy's own either ends with an error, and never again serves the callback group that the
    message was for, or does not say a word, as the middleware has it. So messages are taken as
    bytes here. One that its callback refuses with a ValueError, as rclpy's clock does with a time
    before 1970, is treated alike.
    """

    def _make_handler(self, entity: Any, node: Node, take_from_wait_list: Take) -> Any:
        source = str(getattr(entity, 'topic_name', None) or getattr(entity, 'srv_name', entity))

        def take(entity: Any) -> Any:
            try:
                if isinstance(entity, Subscription):
                    return _take_message(entity, refuse)
                return take_from_wait_list(entity)
            except InvalidHandle:  # it was taken away meanwhile
                return None
            except Exception as error:  # whatever the middleware in use makes of it
                return refuse(error)

        def refuse(error: Exception) -> None:
            count_malformed(node, source, error)

        return super()._make_handler(entity, node, take)


def _take_message(
    subscription: Subscription, refuse: Callable[[Exception], None]
) -> Callable[[], Awaitable[None]] | None:
    """Return what has the next message dealt with, as rclpy's executor does."""
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, True)
    if taken is None:
        return None
    message, about = taken
    if not subscription.raw:
        message = deserialise(message, subscription.msg_type, MOST_BYTES_OF_ANY)
    with_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo

    async def use() -> None:
        try:
            await await_or_execute(subscription.callback, message, *((about,) * with_info))
        except ValueError as error:
            refuse(error)

    return use


@contextlib.contextmanager
def spinning(node: Node, stop: StopRequest | None = None) -> Iterator[None]:
    """
    Answer services, parameters and timers of ``node`` in a thread of its own meanwhile.

    If one of them breaks, the others are no longer answered either: ``stop`` is told.
    """
    executor = NodeExecutor(context=node.context)
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
