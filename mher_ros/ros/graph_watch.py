"""Whether an arm has one commander and one source of joint states."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
import struct
from typing import Any

from mher_ros.ros.wire import JointStateReader, MessageError
import numpy as np
from numpy.typing import NDArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

__all__ = ['GraphWatch', 'StateSources']

PERIOD = 0.25
"""Time between two looks at the graph [s]."""
KEPT = 2.0
"""Time for which a sign of a second source counts [s]."""
UNKNOWN = '_NODE_NAME_UNKNOWN_'
"""How ROS calls the node of a publisher that it has met before the node."""
LATE = 16
"""A message may be overtaken by so many of its own publisher."""
SIGNS = 2
"""Signs of a second source that are enough: a driver that is started again gives one."""
LOST = 64
"""As many messages of a publisher may be lost before it is heard again."""
LEAP = 0.05
"""Change of a joint between two messages that may be from one arm to another [rad or m]."""


class GraphWatch:
    """Looks a few times a second who else commands the arm, or has the node's own name."""

    def __init__(self, node: Node, topic: str | None) -> None:
        """``topic`` is the full name of that of the commands, if any leave."""
        self._node, self._topic = node, topic
        self.other_commander: str | None = None
        """Who commands the arm beside the node, in a sentence; None: nobody."""
        # By the wall clock: a simulated one may stand still.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self.look, clock=clock)
        self.look()

    def look(self) -> None:
        """Ask the graph."""
        self.other_commander = self._namesake() or self._other_publisher()

    def close(self) -> None:
        """Look no more."""
        self._node.destroy_timer(self._timer)

    def _namesake(self) -> str | None:
        node = self._node
        name = node.get_name(), node.get_namespace()
        if node.get_node_names_and_namespaces().count(name) < 2:
            return None
        return f'there is a second node {node.get_fully_qualified_name()}'

    def _other_publisher(self) -> str | None:
        if self._topic is None or self._node.count_publishers(self._topic) < 2:
            return None
        publishers = [
            f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            if info.node_name != UNKNOWN
            else 'a node whose name is not known yet'
            for info in self._node.get_publishers_info_by_topic(self._topic)
        ]
        own = self._node.get_fully_qualified_name()
        if own in publishers:
            publishers.remove(own)
        if not publishers:
            return None
        return (
            f'{", ".join(sorted(publishers))} can publish on {self._topic}, too; a node that was '
            f'killed is forgotten within 20 s'
        )


class StateSources:
    """
    Says whether the joint states of one arm come from more than one publisher.

    Hand it every message, in the order of arrival. Those of other joints are passed over. Each
    publisher numbers its messages, so numbers that go back, again and again, are those of two, and
    so are numbers that go on where they were before they went back.
    Where the middleware gives no numbers, it is joints that change to and fro.
    """

    def __init__(self, joint_names: Sequence[str]) -> None:
        self._marks = [_encoded(name) for name in joint_names]
        self._reader = JointStateReader(joint_names, needs_velocities=False)
        self._recent: deque[int] = deque(maxlen=2 * LATE)
        self._newest = self._sent = 0
        self._left = -LOST
        """The number from which they went back last."""
        self._positions: deque[NDArray[np.float64]] = deque(maxlen=2)
        self._signs: deque[float] = deque(maxlen=SIGNS)

    def take(self, now: float, raw: bytes, about: Mapping[str, Any]) -> None:
        """Take a serialised message and what rclpy says about it; ``now`` by any clock [s]."""
        if not any(mark in raw for mark in self._marks):
            return
        number = about['publication_sequence_number']
        signs = self._goes_back(number, about) if number else self._goes_to_and_fro(raw)
        self._signs.extend([now] * signs)

    def are_several(self, now: float) -> bool:
        """Return whether there is more than one source, or was until a moment ago."""
        return len(self._signs) == SIGNS and now - self._signs[0] <= KEPT

    # Both return how many signs of a second source a message gives.

    def _goes_back(self, number: int, about: Mapping[str, Any]) -> int:
        sent = about['source_timestamp']
        is_new = number not in self._recent
        self._recent.append(number)
        if is_new and 0 < self._newest - number <= LATE and sent < self._sent:
            return 0  # It was overtaken on its way.
        goes_back = number <= self._newest
        goes_on = number > self._newest + LATE and abs(number - self._left) <= LOST
        if goes_back:
            self._left = self._newest
        self._newest, self._sent = number, sent
        return SIGNS if goes_on else int(goes_back)

    def _goes_to_and_fro(self, raw: bytes) -> int:
        try:
            _, positions, _ = self._reader.read(raw)
        except MessageError:
            return 0  # The guard deals with it.
        last = [np.abs(positions - before).max() for before in self._positions]
        self._positions.append(positions)
        return int(len(last) == 2 and last[1] > LEAP and last[0] < 0.5 * last[1])


def _encoded(name: str) -> bytes:
    """Return a string as it stands in a serialised message."""
    text = name.encode()
    return struct.pack('<I', len(text) + 1) + text + b'\0'
