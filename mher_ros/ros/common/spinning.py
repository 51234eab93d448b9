"""Spins a node in the background."""

from collections.abc import Awaitable, Callable, Iterator
import contextlib
import sys
import threading
from typing import Any

from mher_ros.ros.common.polled_topic import count_malformed
from mher_ros.ros.common.process import StopRequest
from mher_ros.ros.common.raw_messages import deserialise, MAX_BYTES_ANY
from rclpy.exceptions import InvalidHandle
from rclpy.executors import await_or_execute, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.subscription import Subscription

Take = Callable[[Any], Any]


class NodeExecutor(SingleThreadedExecutor):
    """An executor that continues after a malformed message, and counts it."""

    # rclpy's own executor either ends with an error and never serves that callback group again, or
    # ignores the message silently, depending on the middleware. So messages are taken as bytes
    # here. A message whose callback raises ValueError counts as malformed, too, for example a time
    # before 1970 on /clock.
    def _make_handler(self, entity: Any, node: Node, take_from_wait_list: Take) -> Any:
        source = str(getattr(entity, 'topic_name', None) or getattr(entity, 'srv_name', entity))

        def take(entity: Any) -> Any:
            try:
                if isinstance(entity, Subscription):
                    return _take_message(entity, refuse)
                return take_from_wait_list(entity)
            except InvalidHandle:  # it was destroyed in the meantime
                return None
            except Exception as error:  # its type depends on the middleware
                return refuse(error)

        def refuse(error: Exception) -> None:
            count_malformed(node, source, error)

        return super()._make_handler(entity, node, take)


def _take_message(
    subscription: Subscription, refuse: Callable[[Exception], None]
) -> Callable[[], Awaitable[None]] | None:
    """Return a coroutine function that calls the callback with the next message."""
    with subscription.handle:
        taken = subscription.handle.take_message(subscription.msg_type, True)
    if taken is None:
        return None
    message, info = taken
    if not subscription.raw:
        message = deserialise(message, subscription.msg_type, MAX_BYTES_ANY)
    with_info = subscription._callback_type is Subscription.CallbackType.WithMessageInfo

    async def use() -> None:
        try:
            await await_or_execute(subscription.callback, message, *((info,) * with_info))
        except ValueError as error:
            refuse(error)

    return use


@contextlib.contextmanager
def spinning(node: Node, stop: StopRequest | None = None) -> Iterator[None]:
    """Spin ``node`` in a thread, then destroy it; an error in a callback requests a stop."""
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
            if over.is_set():  # the node may have been destroyed during a long callback
                return
            sys.excepthook(*sys.exc_info())
            if stop is not None:
                stop.fail()

    thread = threading.Thread(target=spin, name='executor', daemon=True)
    thread.start()
    try:
        yield
    finally:
        # In this order: rclpy's shutdown destroys what a running spin still needs.
        over.set()
        executor.create_task(lambda: None)  # wakes the thread
        thread.join(2.0)
        executor.shutdown(timeout_sec=2.0)
        node.destroy_node()
