"""Obstacles at run time, from topics, for an arm that avoids them or for a simulation."""

import dataclasses
import math
import threading
import time
from typing import Any, Protocol

from mher_ros.control.obstacle_tracker import ObstacleError
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.arm_clock import STEADY, SteadyTimes
from mher_ros.ros.common.frames import Frames, NotYetError
from mher_ros.ros.common.marker_obstacles import MarkerTopic
from mher_ros.ros.common.obstacle_changes import Change, check_place, Shape
from mher_ros.ros.common.planning_scene import PlanningSceneTopic
from mher_ros.ros.common.polled_topic import warn_of_message
from rclpy.node import Node

PATIENCE = 0.5  # time for which an obstacle waits for the transform at its stamp [s]
RETRY = 0.02  # time between two checks for it, and for lifetimes that are over [s]
MOST = 256  # obstacles that wait for their transforms, and obstacles that are remembered
LONGEST = 300  # characters of a text that is published


class Obstacles(Protocol):
    """Obstacles by name; one thread at a time changes them, and holds ``lock``."""

    lock: threading.Lock

    def now(self) -> float:
        """Return the time for lifetimes [s]."""

    def put(self, name: str, shape: Shape, change: Change, sent: int) -> str:
        """
        Take a shape in the base frame, and say what is wrong with it nevertheless; else ''.

        ``sent``: when the message was sent (``time.monotonic_ns``). ObstacleError: it is refused.
        """

    def remove(self, name: str) -> None:
        """Forget an obstacle, if there is one of that name."""

    def lose(self, name: str, reason: str) -> None:
        """Record that an obstacle is not known, or cannot be used."""


@dataclasses.dataclass(frozen=True)
class _Waiting:
    change: Change
    sent: int
    """When it was sent (``time.monotonic_ns``)."""
    give_up_at: float
    """Time (``time.monotonic``) until which it waits for a transform."""


@dataclasses.dataclass(frozen=True)
class _Known:
    """An obstacle that was announced."""

    source: str
    parts: tuple[str, ...]
    """Names of its solids; empty: it was refused."""
    ends_at: float
    """Time at which it is no longer there [s]."""


class ObstacleInput:
    """Passes what messages say about obstacles to ``Obstacles``, and says what is refused."""

    def __init__(
        self, node: Node, obstacles: Obstacles, frames: Frames, planning_scene: str = ''
    ) -> None:
        """``planning_scene``: topic of MoveIt's planning scene; empty: none."""
        self._node, self._obstacles, self._frames = node, obstacles, frames
        self._times = SteadyTimes()
        self._refused, self._answer, self._text = 0, '', ''
        self._waiting: list[_Waiting] = []
        self._known: dict[str, _Known] = {}
        self._timer = node.create_timer(RETRY, self._work, clock=STEADY)
        self._topics: list[MarkerTopic | PlanningSceneTopic] = [MarkerTopic(node, self.take)]
        if planning_scene:
            self._topics.append(PlanningSceneTopic(node, planning_scene, self.take))

    def figures(self) -> dict[str, Any]:
        """Return the fields of the status."""
        return {
            'obstacles': sum(len(one.parts) for one in list(self._known.values())),
            'obstacles_refused': self._refused,
            'obstacle_answer': self._answer,
            'obstacle_text': self._text,
        }

    def close(self) -> None:
        """Close the topics."""
        self._node.destroy_timer(self._timer)
        for topic in self._topics:
            topic.close()

    def take(self, changes: list[Change], sent: int) -> None:
        """Make changes that were sent at a system time [ns]; an executor's thread calls this."""
        since, end = self._times.of(sent), time.monotonic() + PATIENCE
        self._waiting += [_Waiting(change, since, end) for change in changes]
        self._work()

    def _work(self) -> None:
        """Make the changes that can be made now."""
        if not (self._waiting or self._known):
            return
        waiting: list[_Waiting] = []
        ready: list[tuple[_Waiting, list[Shape] | GoalError | ObstacleError]] = []
        for one in self._waiting:
            change = one.change
            try:
                ready.append((one, self._placed(change)))
                waiting = [other for other in waiting if not _outdates(change, other.change)]
            except (GoalError, ObstacleError) as error:
                is_early = isinstance(error, NotYetError) and time.monotonic() < one.give_up_at
                if is_early and len(waiting) < MOST:
                    waiting.append(one)
                else:
                    ready.append((one, error))
        self._waiting = waiting
        with self._obstacles.lock:
            now = self._obstacles.now()
            for name in [name for name, one in self._known.items() if now >= one.ends_at]:
                self._remove(name)
            for one, placed in ready:
                self._make(one, placed, now)

    def _placed(self, change: Change) -> list[Shape]:
        """Return the shapes of an obstacle in the base frame."""
        if change.error is not None:
            raise change.error
        if change.is_removal:
            return []
        if change.is_locked and change.header.frame_id not in ('', self._frames.base):
            raise ObstacleError(
                'a marker that is published again when it moves is expected, got a frame_locked '
                'one in another frame than the base frame',
                Refusal.UNSUPPORTED,
            )
        rotation, translation = self._frames.placement(change.header)
        shapes = [shape.moved(rotation, translation) for shape in change.shapes]
        for shape in shapes:
            check_place(shape)
        return shapes

    def _make(
        self, one: _Waiting, placed: list[Shape] | GoalError | ObstacleError, now: float
    ) -> None:
        change = one.change
        if isinstance(placed, Exception):
            self._refuse(change, placed, now)
        elif change.is_removal:
            gone = [change.name] if change.name else self._names_of(change)
            for name in gone:
                self._remove(name)
        else:
            try:
                self._put(change, placed, one.sent, now)
            except ObstacleError as error:
                self._refuse(change, error, now)

    def _put(self, change: Change, shapes: list[Shape], sent: int, now: float) -> None:
        name, before = change.name, self._known.get(change.name)
        parts = [name] if len(shapes) == 1 else [f'{name}#{i}' for i in range(len(shapes))]
        for old in {name, *(before.parts if before else ())} - set(parts):
            self._obstacles.remove(old)
        taken: list[str] = []
        try:
            for part, shape in zip(parts, shapes, strict=True):
                wrong = self._obstacles.put(part, shape, change, sent)
                taken.append(part)
                if wrong:
                    self._tell(Refusal.TOO_FAST.value, wrong)
        finally:
            if taken:
                self._known[name] = _Known(change.source, tuple(taken), now + change.lifetime)

    def _refuse(self, change: Change, error: GoalError | ObstacleError, now: float) -> None:
        name, text = change.name, str(error)[:LONGEST]
        self._refused += 1
        self._tell(error.code, f'{name}: {error}')
        known = self._known.get(name)
        if known is None and not change.is_solid:
            return
        parts = () if known is None else known.parts
        ends_at = now + change.lifetime
        if known is None and len(self._known) >= MOST:
            name, text, ends_at = f'further ones ({change.source})', 'too many', math.inf
        self._known[name] = _Known(change.source, parts, ends_at)
        for part in parts or [name]:
            self._obstacles.lose(part, text)

    def _names_of(self, change: Change) -> list[str]:
        """Return which obstacles the removal of all of them removes."""
        return [
            name
            for name, one in self._known.items()
            if one.source == change.source and name not in change.kept
        ]

    def _remove(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            for part in {name, *known.parts}:
                self._obstacles.remove(part)

    def _tell(self, code: str, text: str) -> None:
        """Record what is wrong with an obstacle."""
        self._answer, self._text = code, text[:LONGEST]
        warn_of_message(self._node, 'obstacles', f'obstacle {self._text}')


def _outdates(change: Change, earlier: Change) -> bool:
    """Return whether a change makes an earlier one superfluous."""
    return change.source == earlier.source and change.name in ('', earlier.name)
