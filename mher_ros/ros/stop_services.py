"""The services ``~/stop`` and ``~/clear``, which wait for nothing else that a node does."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import threading
from typing import Any

from mher_ros.control.stop_latch import StopLatch
from mher_ros.ros.inbox import NotSpun
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger

__all__ = ['StopServices']

LOOK = 50_000_000
"""Time between two looks at whether to end [ns]."""


class StopServices:
    """
    Answered by a thread and a wait set of their own.

    The node's executor may be busy with a transition that lasts half a minute.
    """

    def __init__(self, node: Node, latch: StopLatch) -> None:
        self._node, self._latch = node, latch
        group = NotSpun()
        self._clear = node.create_service(Trigger, '~/clear', _nobody, callback_group=group)
        self._stop = node.create_service(Trigger, '~/stop', _nobody, callback_group=group)
        self._wait_set = rclpy_implementation.WaitSet(0, 0, 0, 0, 2, 0, node.context.handle)

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Answer meanwhile."""
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
                self._wait_set.wait(LOOK)
                self.answer()

    def answer(self) -> None:
        """Answer what has been asked; of a clear and a stop that are both there, the stop wins."""
        clears, stops = _take_all(self._clear), _take_all(self._stop)
        text = 'no stop was on'
        if clears and self._latch.clear():
            text = 'the stop is cleared; the next goal moves the arm'
        if stops:
            self._latch.set('somebody called ~/stop')
            text = 'a stop came at the same time: the arm stays stopped'
        # Only now: the middleware may wait for a client that it does not know yet.
        _answer(self._stop, stops, 'stopped: the arm brakes; ~/clear ends it')
        _answer(self._clear, clears, text)


def _take_all(service: Service) -> list[Any]:
    """Return the headers of all requests that have come."""
    headers: list[Any] = []
    while True:
        try:
            _, header = service.handle.service_take_request(Trigger.Request)
        except rclpy_implementation.RCLError:  # it cannot be read
            return headers
        if header is None:
            return headers
        headers.append(header)


def _answer(service: Service, headers: list[Any], text: str) -> None:
    for header in headers:
        with contextlib.suppress(rclpy_implementation.RCLError):  # whoever asked may be gone
            service.send_response(Trigger.Response(success=True, message=text), header)


def _nobody(request: Any, response: Any) -> Any:
    """Stand where a callback is asked for."""
