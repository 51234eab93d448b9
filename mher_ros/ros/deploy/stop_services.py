"""The services ``~/stop`` and ``~/clear``, independent of the executor of a node."""

from collections.abc import Callable, Iterator
import contextlib
import threading
from typing import Any

from mher_ros.control.stop_latch import StopLatch
from mher_ros.ros.common.polled_topic import NotSpun, unused
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger

CHECK = 50_000_000  # time between two checks whether to end [ns]


class StopServices:
    """
    Two services with a thread and a wait set of their own.

    The node's executor may be busy for half a minute with a transition.
    """

    def __init__(
        self, node: Node, latch: StopLatch, on_answer: Callable[[], None] = lambda: None
    ) -> None:
        """``on_answer`` is called after each answer."""
        self._node, self._latch, self._on_answer = node, latch, on_answer
        group = NotSpun()
        self._clear = node.create_service(Trigger, '~/clear', unused, callback_group=group)
        self._stop = node.create_service(Trigger, '~/stop', unused, callback_group=group)
        self._wait_set = rclpy_implementation.WaitSet(0, 0, 0, 0, 2, 0, node.context.handle)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Answer requests in a thread."""
        over = threading.Event()
        thread = threading.Thread(target=self._run, args=(over,), name='stop', daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _run(self, over: threading.Event) -> None:
        while not over.is_set() and self._node.context.ok():
            with self._clear.handle, self._stop.handle:
                self._wait_set.clear_entities()
                self._wait_set.add_service(self._clear.handle)
                self._wait_set.add_service(self._stop.handle)
                self._wait_set.wait(CHECK)
                self.answer()

    def answer(self) -> None:
        """Answer all requests; if there are a clear and a stop, the stop wins."""
        clears, stops = _take_all(self._clear), _take_all(self._stop)
        text = 'there was no stop'
        if clears and self._latch.clear():
            text = 'the stop is cleared; the next goal moves the arm'
        if stops:
            self._latch.set('~/stop was called')
            text = 'a stop was requested at the same time: the arm stays stopped'
        # After the latch: the middleware may wait for a client that it has not discovered yet.
        _answer(self._stop, stops, 'stopped: the arm brakes; ~/clear ends it')
        _answer(self._clear, clears, text)
        if clears or stops:
            self._on_answer()


def _take_all(service: Service) -> list[Any]:
    """Return the headers of all requests."""
    headers: list[Any] = []
    while True:
        try:
            _, header = service.handle.service_take_request(Trigger.Request)
        except rclpy_implementation.RCLError:  # a malformed request
            return headers
        if header is None:
            return headers
        headers.append(header)


def _answer(service: Service, headers: list[Any], text: str) -> None:
    for header in headers:
        with contextlib.suppress(rclpy_implementation.RCLError):  # the client may have ended
            service.send_response(Trigger.Response(success=True, message=text), header)
