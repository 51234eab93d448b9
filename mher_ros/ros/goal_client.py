"""Send an arm's tool to a goal and wait until it is there."""

from __future__ import annotations

import math
import time

from geometry_msgs.msg import PointStamped
from mher_ros.errors import ArmError
import numpy as np
from numpy.typing import ArrayLike
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Bool, Float64

__all__ = ['GoalClient']

AS_RVIZ = QoSProfile(depth=5)
"""How RViz publishes clicked points."""
ANSWER = 2.0
"""Time within which a goal is accepted, if it is at all [s]."""
GLANCE = 0.05
"""Longest time without a look at the clock [s]."""


class GoalClient:
    """
    Sends goals to policy_node, as RViz's Publish Point does, and hears what comes of them.

    It spins its own node, so nobody else may.
    """

    def __init__(self, frame: str, node: Node | None = None, policy: str = 'policy_node') -> None:
        """Send goals in ``frame``, the base frame of the arm, to the node called ``policy``."""
        self.node = node or rclpy.create_node('goal_client')
        self._executor = SingleThreadedExecutor(context=self.node.context)
        self._executor.add_node(self.node)
        self._frame = frame
        self._goals = self.node.create_publisher(PointStamped, 'clicked_point', AS_RVIZ)
        self.goal: tuple[float, float, float] | None = None
        """The goal as it was accepted [m]; None until it is."""
        self.distance = math.nan
        """How far the tool is from its goal [m]; NaN until that is known."""
        self.is_reached = False
        self._ready = False
        self.node.create_subscription(Float64, f'{policy}/distance', self._on_distance, 10)
        self.node.create_subscription(Bool, f'{policy}/reached', self._on_reached, 10)
        # Last, so that what was said of the goal before is heard before.
        self.node.create_subscription(PointStamped, f'{policy}/goal', self._on_goal, 10)

    def wait_until_ready(self, timeout: float = 30.0) -> None:
        """Wait until policy_node is active; ArmError if it is not in time [s]."""
        deadline = time.monotonic() + timeout
        while not (self._ready and self._goals.get_subscription_count()):
            if time.monotonic() > deadline:
                raise ArmError(f'policy_node has not become active within {timeout:g} s')
            self.spin(GLANCE)

    def go_to(self, position: ArrayLike) -> None:
        """Send a goal (3,) [m]; with a stamp of 0 it is where its frame is now."""
        message = PointStamped()
        message.header.frame_id = self._frame
        message.point.x, message.point.y, message.point.z = np.asarray(position, float).tolist()
        self.goal, self.distance, self.is_reached = None, math.nan, False
        self._goals.publish(message)

    def wait_until_reached(self, timeout: float) -> bool:
        """
        Wait until the tool is at its goal; return whether it is in time [s].

        A goal that is not accepted is not waited for.
        """
        begin = time.monotonic()
        while not self.is_reached:
            left = begin + (timeout if self.goal else min(timeout, ANSWER)) - time.monotonic()
            if left <= 0.0:
                break
            self.spin(min(GLANCE, left))
        return self.is_reached

    def spin(self, seconds: float) -> None:
        """Hear what comes, for a while [s]."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def close(self) -> None:
        """Leave."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()

    def _on_goal(self, message: PointStamped) -> None:
        point = message.point
        self.goal, self.distance, self.is_reached = (point.x, point.y, point.z), math.nan, False

    def _on_distance(self, message: Float64) -> None:
        if self.goal is not None:
            self.distance = message.data

    def _on_reached(self, message: Bool) -> None:
        self._ready = True
        self.is_reached = message.data and self.goal is not None
