"""What people ask for on the page: goals, and services of other nodes."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from typing import Any

from mher_ros.ros.page_goals import PageGoals
from mher_ros.ros.watched_nodes import POLICY, SIM, TRAIN, WatchedNodes
from mher_ros.view.live_page import Button, Event, LivePage
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
DONE = {
    Button.STOP: 'stopped until Resume is pressed',
    Button.RESET: 'the arm is back at its start',
}
"""What people are told where the service's answer speaks to programs."""
LOOK = 0.5
"""Time between two looks at which nodes there are [s]."""
ANSWER = 5.0
"""Time that a service has to answer [s]."""
CAN_MOVE = (Button.RANDOM_GOAL, Button.RESUME)
"""Besides a goal, what may set a real arm in motion."""
MOST_STOPS = 10
"""Stops that wait for an answer at once: who presses on and on stops the arm no better."""
TOO_OLD = 1.0
"""What was asked for this long ago does not move an arm any more [s]."""


@dataclasses.dataclass(eq=False)
class _Asked:
    """A request that a service has not answered yet."""

    button: Button
    future: Any
    at: float
    is_late: bool = False
    """Whether people were told that no answer came; it may still come."""
    is_overruled: bool = False
    """Whether a stop followed it."""


class PageButtons:
    """
    Offers what can be asked for now, asks for it, and tells what came of it.

    ``stop`` may be called by any thread; all else belongs to the one that has the page. Nothing
    that was asked for before a stop is done after it.
    """

    def __init__(self, node: Node, page: LivePage, goals: PageGoals, nodes: WatchedNodes) -> None:
        self._page, self._goals, self._nodes = page, goals, nodes
        self._clients = {
            button: node.create_client(Trigger, f'{owner}/{service}')
            for button, (owner, service) in SERVICES.items()
        }
        # Of what was asked and when the arm was stopped; nobody waits while it is held.
        self._lock = threading.Lock()
        self._asked: list[_Asked] = []
        self._stopped_at = -math.inf
        self.present: frozenset[str] = frozenset()
        """Nodes whose services are there."""
        self._looked_at = -math.inf

    def tick(self) -> None:
        """Offer what there is, and tell answers."""
        if time.monotonic() - self._looked_at >= LOOK:
            self._looked_at = time.monotonic()
            self.present = frozenset(
                SERVICES[button][0]
                for button, client in self._clients.items()
                if client.service_is_ready()
            )
        is_stopped = self._nodes.figures(POLICY).get('stopped') != 'false'
        self._page.offer(self._offered(), () if is_stopped else (Button.RESUME,))
        with self._lock:
            asked = list(self._asked)
        for one in asked:
            self._settle(one)

    def stop(self) -> None:
        """Stop the arm; may be called by any thread."""
        with self._lock:
            self._stopped_at = time.monotonic()
            # Of two services policy_node chooses which to answer first: a stop that overtook the
            # resume before it would be undone by it. So it is stopped again after that.
            for one in self._asked:
                one.is_overruled |= one.button is Button.RESUME
            waiting = [one for one in self._asked if one.button is Button.STOP and not one.is_late]
            if len(waiting) < MOST_STOPS:
                self._call(Button.STOP)

    def answer(self, event: Event) -> None:
        """Do what was asked for, unless the arm was stopped since, or it would move late."""
        if event.at <= self._stopped_at:
            return
        is_old = time.monotonic() - event.at > TOO_OLD
        if event.goal is not None and is_old:
            self._page.notify('No goal was sent', 'it was let go too long ago')
        elif event.goal is not None:
            self._goals.send(event.goal)
        elif event.button in CAN_MOVE and is_old:
            self._page.notify(event.button.value, 'not done: it was pressed too long ago')
        elif event.button is Button.RANDOM_GOAL:
            self._goals.send_any()
        elif event.button is not None:
            trouble = self._press(event.button, event.at)
            if trouble:
                self._page.notify(event.button.value, trouble)

    def _press(self, button: Button, at: float) -> str:
        """Ask for what a button pressed ``at`` stands for; return why not, if it is not done."""
        is_offered = self._clients[button].service_is_ready()
        with self._lock:
            waiting = {one.button for one in self._asked if not one.is_late}
            if at <= self._stopped_at or button in waiting:
                return ''
            if button is Button.RESUME and Button.STOP in waiting:
                return 'not done: the arm is just being stopped'
            if not is_offered:
                return f'nobody offers {"/".join(SERVICES[button])} now'
            self._call(button)
            return ''

    def _call(self, button: Button) -> None:
        future = self._clients[button].call_async(Trigger.Request())
        self._asked.append(_Asked(button, future, time.monotonic()))

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

    def _settle(self, one: _Asked) -> None:
        """Tell what became of a request, once there is something to tell."""
        if one.future.done():
            with self._lock:
                self._asked.remove(one)
                self._stop_again_after(one)
            answer = one.future.result()
            text = DONE.get(one.button, '') if answer.success else ''
            self._page.notify(one.button.value, text or answer.message, answer.success)
        elif one.is_late:
            # As long as there is somebody to answer, a resume may still undo a stop.
            if SERVICES[one.button][0] not in self.present:
                with self._lock:
                    self._asked.remove(one)
                self._clients[one.button].remove_pending_request(one.future)
        elif time.monotonic() - one.at > ANSWER:
            with self._lock:
                one.is_late = True
                self._stop_again_after(one)
            self._page.notify(one.button.value, f'no answer within {ANSWER:g} s')

    def _stop_again_after(self, one: _Asked) -> None:
        if one.is_overruled:
            self._call(Button.STOP)
