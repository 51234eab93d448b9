"""Buttons of the page: services of other nodes."""

from __future__ import annotations

import threading
import time
from typing import Any

from mher_ros.ros.page_goals import PageGoals
from mher_ros.ros.watched_nodes import POLICY, SIM, TRAIN
from mher_ros.view.live_page import Button, LivePage
from rclpy.node import Node
from std_srvs.srv import Trigger

__all__ = ['PageButtons']

SERVICES = {
    Button.STOP: (POLICY, 'stop'),
    Button.RESUME: (POLICY, 'clear'),
    Button.RESET: (SIM, 'reset'),
    Button.SAVE: (TRAIN, 'save'),
    Button.STOP_TRAINING: (TRAIN, 'stop'),
}
DONE = {Button.STOP: 'stopped until Resume is pressed'}
"""What people are told where the service's answer speaks of services."""
LOOK = 0.5
"""Time between two looks at which nodes there are [s]."""
ANSWER = 5.0
"""Time that a service has to answer [s]."""


class PageButtons:
    """Offers what can be asked for now, asks for it, and tells what came of it."""

    def __init__(self, node: Node, page: LivePage, goals: PageGoals) -> None:
        self._page, self._goals = page, goals
        self._clients = {
            button: node.create_client(Trigger, f'{owner}/{service}')
            for button, (owner, service) in SERVICES.items()
        }
        self._lock = threading.Lock()
        self._asked: list[tuple[Button, Any, float]] = []
        self._stop_again = False
        self.present: frozenset[str] = frozenset()
        """Nodes whose services are there."""
        self._looked_at = -LOOK

    def tick(self) -> None:
        """Offer what there is, and tell answers."""
        if time.monotonic() - self._looked_at >= LOOK:
            self._looked_at = time.monotonic()
            self.present = frozenset(
                SERVICES[button][0]
                for button, client in self._clients.items()
                if client.service_is_ready()
            )
        self._page.offer(self._offered())
        with self._lock:
            asked, self._asked = self._asked, []
        waiting = [one for one in asked if not self._is_settled(*one)]
        with self._lock:
            self._asked = waiting + self._asked

    def stop(self) -> None:
        """Stop the arm; may be called by any thread."""
        # Of two services policy_node chooses which to answer first: a stop that overtook the
        # resume before it would be undone by it.
        self._stop_again = self._waits_for(Button.RESUME)
        self._call(Button.STOP)

    def press(self, button: Button) -> None:
        """Ask for what a button other than the stop stands for; once is enough."""
        waits_for_stop = button is Button.RESUME and self._waits_for(Button.STOP)
        if self._waits_for(button) or waits_for_stop:
            return
        client = self._clients[button]
        if not client.service_is_ready():
            owner, service = SERVICES[button]
            self._page.notify(button.value, f'nobody offers {owner}/{service} now')
            return
        self._call(button)

    def _call(self, button: Button) -> None:
        future = self._clients[button].call_async(Trigger.Request())
        with self._lock:
            self._asked.append((button, future, time.monotonic()))

    def _waits_for(self, button: Button) -> bool:
        with self._lock:
            return any(asked == button for asked, _, _ in self._asked)

    def _offered(self) -> list[Button]:
        offered: list[Button] = []
        if POLICY in self.present:
            offered += [Button.STOP, Button.RESUME]
            if self._goals.is_possible:
                offered.append(Button.RANDOM_GOAL)
        if TRAIN in self.present:
            offered += [Button.SAVE, Button.STOP_TRAINING]
        elif SIM in self.present:
            offered.append(Button.RESET)  # in a run it would only disturb
        return offered

    def _is_settled(self, button: Button, future: Any, at: float) -> bool:
        if future.done():
            if button is Button.RESUME and self._stop_again:
                self._stop_again = False
                self._call(Button.STOP)
            answer = future.result()
            text = DONE.get(button, '') if answer.success else ''
            self._page.notify(button.value, text or answer.message, answer.success)
            return True
        if time.monotonic() - at <= ANSWER:
            return False
        self._clients[button].remove_pending_request(future)
        self._page.notify(button.value, f'no answer within {ANSWER:g} s')
        return True
