"""Obstacles at run time, from the topic ``obstacles``."""

import dataclasses
import math
import time
from typing import Any, cast, NamedTuple

from mher_ros.control.obstacle_tracker import ObstacleError, ObstacleTracker
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.scene import FARTHEST, LARGEST, SMALLEST
from mher_ros.robots.solids import shape_solid, Solid
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.arm_clock import STEADY, SteadyTimes
from mher_ros.ros.common.arm_driver import ArmDriver
from mher_ros.ros.common.geometry import numbers_of, set_quaternion, set_vector
from mher_ros.ros.common.polled_topic import earliest_time, warn_of_message
from mher_ros.ros.common.raw_messages import SECOND, stamp_of
from mher_ros.ros.deploy.frames import Frames, NotYetError
from mher_ros.view.drawings import Colour
import mujoco
import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

DEPTH = 10
PATIENCE = 0.5  # time for which an obstacle waits for the transform at its stamp [s]
RETRY = 0.02  # time between two checks for it, and for lifetimes that are over [s]
MOST = 256  # markers of a message, and obstacles that wait for their transforms
LONGEST = 300  # characters of a text that is published
LONGEST_NAME = 100  # characters of a namespace
MOVING = 'moving'
"""Namespace of obstacles that move, even if they have not yet."""
SHAPES = {Marker.CUBE: 'box', Marker.SPHERE: 'sphere', Marker.CYLINDER: 'cylinder'}
NO_ROTATION = 1e-6  # norm of a quaternion that RViz takes for no rotation


@dataclasses.dataclass(frozen=True)
class _Change:
    """An obstacle that is new or changed, or one or all that are to be removed."""

    name: str = ''
    marker: Marker | None = None
    """None: it is to be removed."""
    sent: int = 0
    """When it was sent (``time.monotonic_ns``)."""
    give_up_at: float = 0.0
    """Time (``time.monotonic``) until which it waits for a transform."""
    kept: frozenset[str] = frozenset()
    """Those that are not removed: the same message has them again."""


class _Placed(NamedTuple):
    """An obstacle in the base frame."""

    solid: Solid
    marker: Marker
    age: float
    """Of its place [s]."""


class ObstacleInput:
    """
    Passes obstacles to a tracker, and says which ones cannot be used.

    The thread that calls this is the only one that changes the obstacles.
    """

    def __init__(
        self, node: Node, driver: ArmDriver, tracker: ObstacleTracker, frames: Frames
    ) -> None:
        self._node, self._driver, self._frames = node, driver, frames
        self._tracker, self._times = tracker, SteadyTimes()
        self._refused, self._answer, self._text = 0, '', ''
        self._waiting: list[_Change] = []
        self._shown: dict[str, Marker] = {}
        self._timer = node.create_timer(RETRY, self._work, clock=STEADY)
        self._subscription = node.create_subscription(
            MarkerArray, 'obstacles', cast(Any, self._take), DEPTH
        )

    def figures(self) -> dict[str, Any]:
        """Return the fields of the status."""
        return {
            'obstacles': len(self._tracker.slots),
            'obstacles_refused': self._refused,
            'obstacle_answer': self._answer,
            'obstacle_text': self._text,
        }

    def markers(self) -> list[Marker]:
        """Return the obstacles as markers in the base frame; free slots delete theirs."""
        found = [
            Marker(ns='obstacles', id=slot, action=Marker.DELETE, type=Marker.CUBE)
            for slot in range(SLOTS)
        ]
        for name, slot in self._tracker.slots.items():
            found[slot] = self._shown[name]
            found[slot].id = slot
        for marker in found:
            marker.header.frame_id = self._frames.base
        return found

    def close(self) -> None:
        """Close the topic."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_subscription(self._subscription)

    def _take(self, message: MarkerArray, info: Any) -> None:
        sent, end = self._times.of(earliest_time(info)), time.monotonic() + PATIENCE
        changes: list[_Change] = []
        later: set[str] = set()
        if len(message.markers) > MOST:
            self._tell(Refusal.TOO_MANY, f'refused those after the first {MOST} markers')
        for marker in reversed(message.markers[:MOST]):
            name = f'{marker.ns[:LONGEST_NAME]}/{marker.id}'
            if marker.action == Marker.DELETEALL:
                changes.append(_Change(kept=frozenset(later)))
            elif marker.action != Marker.DELETE:
                changes.append(_Change(name, marker, sent, end))
                later.add(name)
            elif name not in later:
                changes.append(_Change(name))
        self._waiting += reversed(changes)
        self._work()

    def _work(self) -> None:
        """Make the changes that can be made now."""
        if not (self._waiting or self._shown):
            return
        waiting: list[_Change] = []
        ready: list[tuple[_Change, _Placed | GoalError | ObstacleError | None]] = []
        for change in self._waiting:
            if change.marker is None:
                waiting = [one for one in waiting if change.name not in ('', one.name)]
                ready.append((change, None))
                continue
            try:
                ready.append((change, self._placed(change.marker, change.sent)))
            except (GoalError, ObstacleError) as error:
                if isinstance(error, NotYetError) and time.monotonic() < change.give_up_at:
                    waiting.append(change)
                else:
                    ready.append((change, error))
        self._waiting = waiting[-MOST:]
        with self._driver.lock:
            now = self._driver.clock.now()
            self._tracker.expire(now)
            for change, placed in ready:
                try:
                    self._make(change, placed, now)
                except (GoalError, ObstacleError) as error:
                    self._tracker.lose(change.name, str(error)[:LONGEST])
                    self._refused += 1
                    self._tell(error.code, f'{change.name}: {error}')
        for name in self._shown.keys() - self._tracker.slots.keys():
            del self._shown[name]

    def _make(
        self, change: _Change, placed: _Placed | GoalError | ObstacleError | None, now: float
    ) -> None:
        tracker, marker = self._tracker, change.marker
        if isinstance(placed, Exception):
            raise placed
        if marker is None or placed is None:
            for name in [change.name] if change.name else tracker.slots.keys() - change.kept:
                tracker.remove(name)
            return
        lifetime = marker.lifetime.sec + marker.lifetime.nanosec / SECOND
        too_fast = tracker.put(
            change.name,
            placed.solid,
            now - placed.age,
            now,
            lifetime if lifetime > 0.0 else math.inf,
            moves=marker.ns.split('/')[0] == MOVING,
        )
        self._shown[change.name] = placed.marker
        if too_fast:
            self._tell(Refusal.TOO_FAST, too_fast)

    def _tell(self, code: str, text: str) -> None:
        """Record what is wrong with an obstacle."""
        self._answer, self._text = str(getattr(code, 'value', code)), text[:LONGEST]
        warn_of_message(self._node, self._subscription.topic_name, f'obstacle {self._text}')

    def _placed(self, marker: Marker, sent: int) -> _Placed:
        shape = SHAPES.get(marker.type)
        if shape is None or marker.action != Marker.ADD:
            raise ObstacleError(
                'a CUBE, SPHERE or CYLINDER, and ADD, MODIFY, DELETE or DELETEALL are expected, '
                f'got type {marker.type} and action {marker.action}',
                Refusal.UNSUPPORTED,
            )
        if marker.frame_locked and marker.header.frame_id not in ('', self._frames.base):
            raise ObstacleError(
                'a marker that is published again when it moves is expected, got a frame_locked '
                'one in another frame than the base frame',
                Refusal.UNSUPPORTED,
            )
        *position, w, x, y, z = numbers_of(marker.pose.position, marker.pose.orientation)
        edges = numbers_of(marker.scale)
        if not np.isfinite([*position, w, x, y, z, *edges]).all():
            raise ObstacleError(
                f'finite numbers are expected, got {position}, {[w, x, y, z]} and {edges}',
                Refusal.BAD_MESSAGE,
            )
        if not all(SMALLEST <= edge <= LARGEST for edge in edges):
            raise ObstacleError(
                f'a scale from {SMALLEST:g} to {LARGEST:g} m is expected, got {edges}',
                Refusal.BAD_SIZE,
            )
        rotation, translation = self._frames.placement(marker.header)
        place = rotation @ np.array(position) + translation
        if np.abs(place).max() > FARTHEST:
            raise ObstacleError(
                f'a place within {FARTHEST:g} m of the base frame is expected, got {position}',
                Refusal.BAD_SIZE,
            )
        size = math.sqrt(w * w + x * x + y * y + z * z)
        turn = np.array((w, x, y, z)) / size if size > NO_ROTATION else np.array((1.0, 0, 0, 0))
        orientation, frame_turn = np.empty(4), np.empty(4)
        mujoco.mju_mat2Quat(frame_turn, rotation.ravel())
        mujoco.mju_mulQuat(orientation, frame_turn, turn)
        wide, deep, high = edges
        sizes = {  # an ellipsoid is inside of a sphere, and an elliptic cylinder of a round one
            'box': (wide, deep, high),
            'sphere': (max(edges) / 2.0, 0.0, 0.0),
            'cylinder': (max(wide, deep) / 2.0, high, 0.0),
        }[shape]
        shown = Marker(ns='obstacles', type=marker.type, action=Marker.ADD, scale=marker.scale)
        set_vector(shown.pose.position, place)
        set_quaternion(shown.pose.orientation, orientation)
        colour = shown.color
        colour.r, colour.g, colour.b, colour.a = Colour.OBSTACLE
        stamp, age = stamp_of(marker.header.stamp), time.monotonic_ns() - sent
        if stamp > 0:
            age = max(age, stamp_of(self._driver.clock.stamp()) - stamp)
        return _Placed(
            shape_solid(shape, sizes).at((place, orientation)), shown, max(0, age) / SECOND
        )
