"""Checks that an arm has one commander, and one source of joint states and of poses."""

from collections import deque
from collections.abc import Mapping, Sequence
import contextlib
import struct
from typing import Any

from mher_ros.ros.common.arm_clock import STEADY
from mher_ros.ros.common.raw_messages import JointStateReader, MessageError, PoseReader
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

PERIOD = 0.25  # time between two checks of the graph [s]
KEPT = 2.0  # time for which a sign of a second source counts [s]
UNKNOWN = '_NODE_NAME_UNKNOWN_'  # node of a publisher that discovery has not found yet
LATE = 16  # messages of the same publisher that may overtake one
SIGNS = 2  # signs that prove a second source: a driver that is restarted gives one
LOST = 64  # messages of a publisher that may be lost in a row
DIFFERENCE = 0.05  # change that may be the difference of two sources [rad or m]


class GraphWatch:
    """Checks four times a second who else commands the arm, or has the node's own name."""

    def __init__(self, node: Node, topic: str | None) -> None:
        """``topic``: full name of the topic of commands, if any are sent."""
        self._node, self._topic = node, topic
        self.other_commander: str | None = None  # None: there is none
        self._timer = node.create_timer(PERIOD, self.check, clock=STEADY)
        self.check()

    def check(self) -> None:
        self.other_commander = self._namesake() or self._other_publisher()

    def close(self) -> None:
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
        with contextlib.suppress(ValueError):
            publishers.remove(self._node.get_fully_qualified_name())
        if not publishers:
            return None
        return (
            f'{", ".join(sorted(publishers))} can also publish on {self._topic}; a killed node '
            'disappears within 20 s'
        )


class Sources:
    """
    Detects whether the messages of one topic come from more than one publisher.

    Call ``take`` with every message, in the order of arrival; those of others are ignored.
    Each publisher numbers its messages. So numbers that decrease repeatedly are those of two
    publishers, and so are numbers that continue where they were before they decreased. If the
    middleware gives no numbers, places that jump back and forth are the sign.
    """

    def __init__(self) -> None:
        self._recent: deque[int] = deque(maxlen=2 * LATE)
        self._newest = self._sent = 0
        self._left = -LOST  # the number before the last decrease
        self._places: deque[NDArray[np.float64]] = deque(maxlen=2)
        self._signs: deque[float] = deque(maxlen=SIGNS)

    def take(self, now: float, raw: bytes, info: Mapping[str, Any]) -> None:
        """Take a serialised message and rclpy's info about it; ``now`` of any clock [s]."""
        if not self._counts(raw):
            return
        number = info['publication_sequence_number']
        signs = self._decreases(number, info) if number else self._alternates(raw)
        self._signs.extend([now] * signs)

    def are_several(self, now: float) -> bool:
        """Return whether there are, or recently were, several sources."""
        return len(self._signs) == SIGNS and now - self._signs[0] <= KEPT

    def _counts(self, raw: bytes) -> bool:
        """Return whether a message is of the source that is watched."""
        return True

    def _place(self, raw: bytes) -> NDArray[np.float64]:
        """Return positions [rad or m] that move steadily; MessageError: there are none."""
        raise NotImplementedError

    # Both return the number of signs of a second source that a message gives.

    def _decreases(self, number: int, info: Mapping[str, Any]) -> int:
        sent = info['source_timestamp']
        is_new = number not in self._recent
        self._recent.append(number)
        if is_new and 0 < self._newest - number <= LATE and sent < self._sent:
            return 0  # it was overtaken
        decreases = number <= self._newest
        continues = number > self._newest + LATE and abs(number - self._left) <= LOST
        if decreases:
            self._left = self._newest
        self._newest, self._sent = number, sent
        return SIGNS if continues else int(decreases)

    def _alternates(self, raw: bytes) -> int:
        try:
            place = self._place(raw)
        except MessageError:
            return 0  # SafetyMonitor reports it
        last = [np.abs(place - before).max() for before in self._places]
        self._places.append(place)
        return int(len(last) == 2 and last[1] > DIFFERENCE and last[0] < 0.5 * last[1])


class StateSources(Sources):
    """Detects whether the joint states of one arm come from more than one publisher."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        super().__init__()
        self._marks = [_encoded(name) for name in joint_names]
        self._reader = JointStateReader(joint_names, needs_velocities=False)

    def _counts(self, raw: bytes) -> bool:
        return any(mark in raw for mark in self._marks)

    def _place(self, raw: bytes) -> NDArray[np.float64]:
        return self._reader.read(raw)[1]


class PoseSources(Sources):
    """Detects whether the measured poses of a tool come from more than one publisher."""

    def __init__(self, frame: str) -> None:
        super().__init__()
        self._reader = PoseReader(frame)

    def _place(self, raw: bytes) -> NDArray[np.float64]:
        return self._reader.read(raw)[1]


def _encoded(name: str) -> bytes:
    """Return a string as it is serialised."""
    text = name.encode()
    return struct.pack('<I', len(text) + 1) + text + b'\0'
