"""What view_node hears of the other nodes."""

from __future__ import annotations

import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from mher_ros.ros.inbox import LATCHED, SEVERAL
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool, Float64, Float64MultiArray
from visualization_msgs.msg import MarkerArray

__all__ = ['GONE', 'Heard', 'POLICY', 'SIM', 'TRAIN', 'WatchedNodes']

POLICY, TRAIN, SIM = 'policy_node', 'train_node', 'sim_node'
GONE = 3.0
"""What has not been told for this long holds no more [s]; diagnostics come once a second."""
ACTIVE = 1.5
"""The same for what policy_node tells ten times a second while it is active [s]."""


class Heard:
    """The last message of a topic, and when it came."""

    def __init__(self, lasts: float) -> None:
        """``lasts``: time for which it holds [s]."""
        self._lasts = lasts
        self._message: Any = None
        self._at = -math.inf

    def take(self, message: Any) -> None:
        """Keep it."""
        self._message, self._at = message, time.monotonic()

    @property
    def latest(self) -> Any:
        """The last message; None if it holds no more."""
        return self._message if time.monotonic() - self._at <= self._lasts else None


class WatchedNodes:
    """The latest of each node; they may come and go."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._statuses = {self._full(name): Heard(GONE) for name in (POLICY, TRAIN)}
        node.create_subscription(DiagnosticArray, '/diagnostics', self._take, 50)
        # Nothing of these is acknowledged: policy_node has an arm to lead.
        self.policy_markers = self._hear(MarkerArray, f'{POLICY}/markers', ACTIVE)
        self.train_markers = self._hear(MarkerArray, f'{TRAIN}/markers', GONE)
        self._distance: float | None = None
        node.create_subscription(Float64, f'{POLICY}/distance', self._take_distance, SEVERAL)
        node.create_subscription(Bool, f'{POLICY}/reached', self._take_reached, SEVERAL)
        self.arrival = Heard(ACTIVE)
        """Distance from the goal [m], None if there is no goal, and whether it is reached."""
        # Told once an evaluation, and to whoever comes later.
        self.curve = self._hear(Float64MultiArray, f'{TRAIN}/curve', math.inf, LATCHED)

    @property
    def is_active(self) -> bool:
        """Whether policy_node takes goals."""
        return self.arrival.latest is not None

    def status(self, name: str) -> DiagnosticStatus | None:
        """Return what the node called ``name`` says of itself."""
        return self._statuses[self._full(name)].latest

    def figures(self, name: str) -> dict[str, str]:
        """Return the figures of that; none: no such node is heard."""
        status = self.status(name)
        return {} if status is None else {pair.key: pair.value for pair in status.values}

    def number(self, name: str, key: str) -> float | None:
        """Return a figure; None if it is not told, or not a finite number."""
        try:
            number = float(self.figures(name).get(key, ''))
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    def _full(self, name: str) -> str:
        """Return what a node of this namespace is called on /diagnostics."""
        return f'{self._node.get_namespace()}/{name}'.lstrip('/')

    def _hear(self, kind: type, topic: str, lasts: float, qos: QoSProfile = SEVERAL) -> Heard:
        heard = Heard(lasts)
        self._node.create_subscription(kind, topic, heard.take, qos)
        return heard

    def _take_distance(self, message: Float64) -> None:
        self._distance = message.data

    def _take_reached(self, message: Bool) -> None:
        # Told after the distance that it belongs to: the two are shown together or not at all.
        self.arrival.take((self._distance, message.data))
        self._distance = None

    def _take(self, array: DiagnosticArray) -> None:
        for status in array.status:
            if status.name in self._statuses:
                self._statuses[status.name].take(status)
