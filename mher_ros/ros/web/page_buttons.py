"""Requests of the page's users: goals, and services of other nodes."""

import dataclasses
import math
import threading
import time
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped
from mher_ros.interface import Vector
from mher_ros.ros.common.geometry import set_vector
from mher_ros.ros.common.status import DeploymentStatus, Point
from mher_ros.ros.web.watched_nodes import POLICY, SIM, TRAIN, WatchedNodes
from mher_ros.view.live_page import Button, CAN_MOVE, Event, LivePage
import numpy as np
from rclpy.node import Node
from std_srvs.srv import Trigger

SERVICES = {
    Button.STOP: (POLICY, 'stop'),
    Button.RESUME: (POLICY, 'clear'),
    Button.RESET: (SIM, 'reset'),
    Button.SAVE: (TRAIN, 'save'),
    Button.STOP_TRAINING: (TRAIN, 'stop'),
}
DONE = {Button.STOP: 'stopped until Resume is pressed'}  # instead of the service's response
CHECK = 0.5  # time between two checks for nodes [s]
ANSWER = 5.0  # timeout of a service [s]
MAX_STOPS = 10  # stops without an answer at the same time
TOO_OLD = 1.0  # age of a request from which on it does not move an arm [s]
FRESH = 0.5  # age of a status up to which it tells of all stops, apart from very short ones [s]
GIVE_UP = 5.0  # timeout of the answer to a goal [s]


@dataclasses.dataclass(eq=False)
class _Request:
    """A request that a service has not answered yet."""

    button: Button
    future: Any
    at: float
    is_late: bool = False  # whether the timeout was shown; the answer may still be received


class PageButtons:
    """Offers the possible requests, sends them, shows responses; any thread may ``stop``."""

    # Nothing that was requested before a stop is done after it, even if this process, or a message
    # of a browser, was held up until the stop was over. So each stop or clear gives the page a new
    # edition, and what may start a motion waits for a status that was sent after it was received:
    # it is done if its edition is still that of the status.

    def __init__(
        self, node: Node, page: LivePage, goals: 'PageGoals', nodes: WatchedNodes
    ) -> None:
        self._page, self._goals, self._nodes = page, goals, nodes
        self._clients = {
            button: node.create_client(Trigger, f'{owner}/{service}')
            for button, (owner, service) in SERVICES.items()
        }
        # Of requests and time of the last stop; it is never held while waiting.
        self._lock = threading.Lock()
        self._asked: list[_Request] = []
        self._waiting: list[Event] = []  # events that may start a motion
        self._stopped_at = -math.inf
        self.present: frozenset[str] = frozenset()  # nodes whose services are ready
        self._looked_at = -math.inf

    def tick(self) -> None:
        if time.monotonic() - self._looked_at >= CHECK:
            self._looked_at = time.monotonic()
            self.present = frozenset(
                SERVICES[button][0]
                for button, client in self._clients.items()
                if client.service_is_ready()
            )
        policy = self._nodes.policy.latest
        is_stopped = policy is None or policy.stopped
        self._page.offer(self._offered(), () if is_stopped else (Button.RESUME,))
        with self._lock:
            asked = list(self._asked)
        for one in asked:
            self._settle(one)

    def stop(self) -> None:
        """Stop the arm; may be called by any thread."""
        with self._lock:
            self._stopped_at = time.monotonic()
            waiting = [one for one in self._asked if one.button is Button.STOP and not one.is_late]
            if len(waiting) < MAX_STOPS:
                self._call(Button.STOP)

    @property
    def is_waiting(self) -> bool:
        """Whether a goal, or a resume, waits for a status."""
        return bool(self._waiting)

    def answer(self, event: Event) -> None:
        """Handle an event, unless the arm was stopped since; ``follow`` does what may move it."""
        if event.goal is not None or event.button in CAN_MOVE:
            self._waiting.append(event)
        elif event.at > self._stopped_at:
            self._do(event)

    def follow(self) -> None:
        """Follow stops and clears; to be called many times per second."""
        sent = self._nodes.policy_sent  # before the status, so that this is not an earlier one
        status = self._nodes.policy.latest
        if status is not None:
            self._page.renew(status.goals_from)
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            now = time.monotonic()
            if event.at <= self._stopped_at:
                continue
            if now - event.at > TOO_OLD:
                self._refuse(event, 'too long ago')
            elif status is None or sent <= event.at or now - sent > FRESH:
                self._waiting.append(event)
            elif status.goals_from != event.edition:
                self._refuse(event, 'before the last stop, resume or activation')
            else:
                self._do(event)

    def _refuse(self, event: Event, when: str) -> None:
        if event.button is None:
            self._page.notify('No goal was sent', f'it was released {when}')
        else:
            self._page.notify(event.button.value, f'not done: it was pressed {when}')

    def _do(self, event: Event) -> None:
        if event.goal is not None:
            self._goals.send(event.goal)
        elif event.button is Button.RANDOM_GOAL:
            self._goals.send_any()
        elif event.button is not None:
            trouble = self._press(event.button, event.at)
            if trouble:
                self._page.notify(event.button.value, trouble)

    def _press(self, button: Button, at: float) -> str:
        """Call the service of a button pressed ``at`` [s]; return the reason if it is not done."""
        policy = self._nodes.policy.latest
        if button is Button.RESET and policy is not None and (policy.moving or policy.goal):
            # After a small jump it would go on, from where the arm was.
            return 'not done: stop the arm first'
        is_offered = self._clients[button].service_is_ready()
        with self._lock:
            waiting = {one.button for one in self._asked if not one.is_late}
            if at <= self._stopped_at or button in waiting:
                return ''
            if button is Button.RESUME and Button.STOP in waiting:
                return 'not done: the arm is being stopped'
            if not is_offered:
                return f'service {"/".join(SERVICES[button])} is not available'
            self._call(button)
            return ''

    def _call(self, button: Button) -> None:
        future = self._clients[button].call_async(Trigger.Request())
        self._asked.append(_Request(button, future, time.monotonic()))

    def _offered(self) -> list[Button]:
        offered: list[Button] = []
        if POLICY in self.present:
            offered += [Button.STOP, Button.RESUME]
            if self._goals.is_possible:
                offered.append(Button.RANDOM_GOAL)
        if TRAIN in self.present:
            offered += [Button.SAVE, Button.STOP_TRAINING]
        elif SIM in self.present:
            offered.append(Button.RESET)  # it would disturb a training run
        return offered

    def _settle(self, one: _Request) -> None:
        if one.future.done():
            with self._lock:
                self._asked.remove(one)
                self._stop_again_after(one)
            answer = one.future.result()
            text = DONE.get(one.button, '') if answer.success else ''
            self._page.notify(one.button.value, text or answer.message, answer.success)
        elif one.is_late:
            # As long as the node exists, a late resume may still undo a stop.
            if SERVICES[one.button][0] not in self.present:
                with self._lock:
                    self._asked.remove(one)
                self._clients[one.button].remove_pending_request(one.future)
        elif time.monotonic() - one.at > ANSWER:
            with self._lock:
                one.is_late = True
                self._stop_again_after(one)
            self._page.notify(one.button.value, f'no answer within {ANSWER:g} s')

    def _stop_again_after(self, one: _Request) -> None:
        # policy_node may answer two requests in any order: an earlier resume that is handled after
        # the stop would undo it.
        if one.button is Button.RESUME and one.at <= self._stopped_at:
            self._call(Button.STOP)


class _Sent(NamedTuple):
    """A goal that policy_node has not answered yet."""

    position: Point
    at: float
    answers: int  # number of goals that were answered before


class PageGoals:
    """Sends goals to policy_node while that is active."""

    # The handle shows the goal: it moves to each accepted goal, and back if a goal is refused. It
    # is only offered if the arm is drawn in the frame of goals.
    def __init__(self, node: Node, page: LivePage, nodes: WatchedNodes) -> None:
        self._node, self._page, self._nodes = node, page, nodes
        self._publisher = node.create_publisher(PoseStamped, 'goal_pose', 10)
        self._sent: _Sent | None = None
        self._handle: Vector | None = None
        self._refused: int | None = None
        self._random = np.random.default_rng()

    def tick(self, is_waiting: bool = False) -> None:
        """Show the goal; ``is_waiting``: somebody has released the handle, and it will be sent."""
        self._place_handle(self._taker(), is_waiting)
        status = self._nodes.policy.latest
        if status is not None:
            if self._refused is not None and status.refused > self._refused:
                self._page.notify('The goal was refused', status.answer_text)
            self._refused = status.refused

    @property
    def is_possible(self) -> bool:
        """Whether policy_node accepts goals now, in the frame of the page."""
        return self._taker() is not None

    def send(self, goal: Vector) -> None:
        """Send ``goal`` (3,) [m], in the frame of the page."""
        taker = self._taker()
        if taker is None:
            frame = self._page.frame or 'none, since no arm is drawn'
            self._page.notify(
                'No goal was sent', f'policy_node is not active, or not in frame {frame}'
            )
            return
        message = PoseStamped()
        message.header.frame_id = self._page.frame
        message.header.stamp = self._node.get_clock().now().to_msg()
        place = message.pose.position
        set_vector(place, goal)
        # Height 0 would mean the height of the tool.
        place.z = place.z or 1e-9
        message.pose.orientation.w = 1.0
        self._publisher.publish(message)
        self._sent = _Sent((place.x, place.y, place.z), time.monotonic(), taker.answers)

    def send_any(self) -> None:
        taker = self._taker()
        if taker is not None and taker.workspace is not None:
            self.send(self._random.uniform(*taker.workspace))

    def _taker(self) -> DeploymentStatus | None:
        """Return the status of policy_node, if it accepts goals in the frame of the page."""
        status = self._nodes.policy.latest
        if status is None or not status.is_active or status.frame != self._page.frame:
            return None
        return status

    def _place_handle(self, taker: DeploymentStatus | None, is_waiting: bool) -> None:
        if taker is None:
            self._handle = self._sent = None
            self._page.goal.place(None)
            return
        self._page.renew(taker.goals_from)  # first: an earlier handle must not be seen again
        if is_waiting:
            return
        if self._sent is not None:
            is_ours = taker.answered_position == self._sent.position
            is_answered = is_ours and taker.answers != self._sent.answers
            if not is_answered and time.monotonic() - self._sent.at < GIVE_UP:
                return
            self._sent = None
        if taker.goal is not None:
            self._handle = np.array(taker.goal)
        elif self._handle is None and taker.workspace is not None:
            self._handle = np.mean(taker.workspace, axis=0)
        # Without a goal, the handle stays at the last one.
        self._page.goal.place(self._handle)
