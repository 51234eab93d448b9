"""Obstacles as ``visualization_msgs/MarkerArray``, on the topic ``obstacles``."""

from collections import deque
from collections.abc import Callable
import dataclasses
import math
from typing import Any, cast

from mher_ros.control.obstacle_tracker import ObstacleError
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.workspace import Refusal
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.obstacle_changes import (
    Change,
    check_finite,
    checked_shape,
    hull_shape,
    MOST_POINTS,
    NOWHERE,
    pose_in,
    Shape,
    short_name,
)
from mher_ros.ros.common.polled_topic import earliest_time
from mher_ros.ros.common.raw_messages import deserialise, MalformedError, SECOND
import numpy as np
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from visualization_msgs.msg import Marker, MarkerArray

MARKERS = 'markers'
DEPTH = 10
MOST = 256  # markers of a message that are obstacles
MOST_BYTES = 512 * 1024
"""Longest message that is read: reading 10,000 markers would delay commands by over 0.5 s."""
UNREAD = 'a message'
"""Name of the obstacles in messages that are not read; no marker has it."""
MOVING = 'moving'
"""Namespace of obstacles that move, even if they have not yet."""
NO_SOLIDS = (
    Marker.ARROW,
    Marker.ARROW_STRIP,
    Marker.LINE_LIST,
    Marker.LINE_STRIP,
    Marker.TEXT_VIEW_FACING,
)
"""Types of markers that only show something: they are refused without effect."""
LISTS = {Marker.CUBE_LIST: Marker.CUBE, Marker.SPHERE_LIST: Marker.SPHERE}


class MarkerTopic:
    """Receives markers, also those that a latched publisher sent before."""

    def __init__(self, node: Node, take: Callable[[list[Change], int], None]) -> None:
        """Call ``take`` with changes, and the system time [ns] at which they were sent."""
        self._node, self._pass_on = node, take
        self._sent: deque[tuple[int, int]] = deque(maxlen=4 * DEPTH)
        # One that asks for latched messages gets none from other publishers, and the other one
        # no earlier message. The first is that of earlier messages, which are read first.
        quiet = SubscriptionEventCallbacks(use_default_callbacks=False)
        self._subscriptions = [
            node.create_subscription(
                MarkerArray,
                'obstacles',
                cast(Any, self._take),
                QoSProfile(depth=DEPTH, durability=durability),
                event_callbacks=quiet,
                raw=True,
            )
            for durability in (DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE)
        ]

    def close(self) -> None:
        """Close the topic."""
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)

    def _take(self, raw: bytes, info: Any) -> None:
        sent = info['source_timestamp'], info['publication_sequence_number']
        if all(sent) and sent in self._sent:
            return  # both subscriptions receive what a latched publisher sends
        self._sent.append(sent)
        self._pass_on(_changes_in(raw), earliest_time(info))


def _changes_in(raw: bytes) -> list[Change]:
    """Return the changes of a serialised message; if it cannot be read, it is refused."""
    try:
        return read_markers(deserialise(raw, MarkerArray, MOST_BYTES))
    except MalformedError as error:
        refused = ObstacleError(str(error), Refusal.BAD_MESSAGE)
        return [Change(MARKERS, UNREAD, error=refused)]


def read_markers(message: MarkerArray) -> list[Change]:
    """Return the changes of a message, in their order."""
    changes: list[Change] = []
    later: set[str] = set()
    for index, marker in reversed(list(enumerate(message.markers))):
        name = f'{short_name(marker.ns)}/{marker.id}'
        if marker.action == Marker.DELETEALL:
            changes.append(Change(MARKERS, kept=frozenset(later)))
        elif marker.action != Marker.DELETE:
            changes.append(_read(name, marker, is_one_too_many=index >= MOST))
            later.add(name)
        elif name not in later:
            changes.append(Change(MARKERS, name))
    return changes[::-1]


def _read(name: str, marker: Marker, is_one_too_many: bool) -> Change:
    lifetime = marker.lifetime.sec + marker.lifetime.nanosec / SECOND
    change = Change(
        MARKERS,
        name,
        header=marker.header,
        is_solid=marker.type not in NO_SOLIDS,
        is_locked=marker.frame_locked,
        lifetime=lifetime if lifetime > 0.0 else math.inf,
        moves=marker.ns.split('/')[0] == MOVING,
    )
    try:
        if is_one_too_many:
            raise ObstacleError(
                f'a message of at most {MOST} markers is expected, got more', Refusal.TOO_MANY
            )
        return dataclasses.replace(change, shapes=_shapes(marker))
    except ObstacleError as error:
        return dataclasses.replace(change, error=error)


def _shapes(marker: Marker) -> tuple[Shape, ...]:
    """Return the solids of a marker in its frame; ObstacleError if there are none."""
    if marker.action != Marker.ADD:
        raise ObstacleError(
            f'ADD, MODIFY, DELETE or DELETEALL are expected, got action {marker.action}',
            Refusal.UNSUPPORTED,
        )
    pose, scale = pose_in(marker.pose), numbers_of(marker.scale)
    if marker.type in LISTS:
        if not 1 <= len(marker.points) <= SLOTS:
            raise ObstacleError(
                f'a list of 1 to {SLOTS} points is expected, got {len(marker.points)}',
                Refusal.TOO_MANY,
            )
        places = np.array([numbers_of(point) for point in marker.points])
        check_finite(places)
        one = _simple_shape(LISTS[marker.type], scale)
        return tuple(one._replace(pose=(place, NOWHERE[1])).under(pose) for place in places)
    if marker.type == Marker.TRIANGLE_LIST:
        points = np.array([numbers_of(point) for point in marker.points[: MOST_POINTS + 1]])
        return (hull_shape(points.reshape(-1, 3) * scale, pose),)
    return (_simple_shape(marker.type, scale).under(pose),)


def _simple_shape(kind: int, scale: list[float]) -> Shape:
    """Return the solid of a type of marker; all of it is inside of this solid."""
    wide, deep, high = scale
    check_finite(scale)
    if kind == Marker.CUBE:
        return checked_shape('box', (wide, deep, high), NOWHERE)
    if min(scale) <= 0.0 and kind in (Marker.SPHERE, Marker.CYLINDER):
        raise ObstacleError(f'a positive scale is expected, got {scale}', Refusal.BAD_SIZE)
    if kind == Marker.SPHERE:  # an ellipsoid is inside of it
        return checked_shape('sphere', (max(scale) / 2.0, 0.0, 0.0), NOWHERE)
    if kind == Marker.CYLINDER:  # an elliptic one is inside of it
        return checked_shape('cylinder', (max(wide, deep) / 2.0, high, 0.0), NOWHERE)
    raise ObstacleError(
        'a CUBE, SPHERE, CYLINDER, CUBE_LIST, SPHERE_LIST or TRIANGLE_LIST is expected, got '
        f'type {kind}',
        Refusal.UNSUPPORTED,
    )
