"""What train_node shows, in RViz and on the page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading

from mher_ros.interface import TaskInterface
from mher_ros.ros.markers import training_markers
from mher_ros.tasks.task import Observation
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

__all__ = ['TrainView']

RATE = 10.0
"""Messages in a second, if somebody looks."""
TRAIL = 200
"""Positions of the tool that its trail shows."""


class TrainView:
    """
    The goal, the workspace, the way of the tool in the current episode, and virtual goals.

    ``virtual_offsets`` is asked, while somebody looks, for those of the last batch (k, m).
    """

    def __init__(self, node: Node, interface: TaskInterface) -> None:
        self._node, self._interface = node, interface
        self._lock = threading.Lock()
        self._goal: NDArray[np.float64] | None = None
        self.virtual_offsets: Callable[[], NDArray[np.float32] | None] = lambda: None
        self._trail: deque[NDArray[np.float64]] = deque(maxlen=TRAIL)
        self._publisher = node.create_publisher(MarkerArray, '~/markers', 1)
        node.create_timer(1.0 / RATE, self._show)

    def watch(self, observation: Observation, first: bool) -> None:
        """Take an observation; ``first`` says that an episode begins with it."""
        with self._lock:
            if first:
                self._trail.clear()
                self._goal = observation['desired_goal']
            self._trail.append(observation['achieved_goal'])

    def _show(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            return
        with self._lock:
            goal, trail = self._goal, list(self._trail)
        if goal is not None:
            made = self.virtual_offsets()
            self._publisher.publish(
                training_markers(self._interface, goal, trail, virtual_offsets=made)
            )
