"""Goals that people set on the page, and where its handle waits for them."""

from __future__ import annotations

import time

from geometry_msgs.msg import PoseStamped
from mher_ros.ros.drawn_markers import extent_of, frame_of, place_of
from mher_ros.ros.watched_nodes import POLICY, WatchedNodes
from mher_ros.view.live_page import LivePage
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

__all__ = ['PageGoals']

Vector = NDArray[np.float64]

TAKEN = 0.7
"""Time within which a goal that was sent is expected to be the arm's [s]."""
SAME = 1e-3
"""Goals less apart are the same: one may be moved to the edge of the workspace [m]."""


class PageGoals:
    """
    Sends goals to policy_node, and only while that is active.

    The handle is where the goal is: it goes to one that came from elsewhere, and back if one is
    refused. It is not offered unless the arm is drawn in the frame in which goals are told.
    """

    def __init__(self, node: Node, page: LivePage, nodes: WatchedNodes) -> None:
        self._node, self._page, self._nodes = node, page, nodes
        self._publisher = node.create_publisher(PoseStamped, 'goal_pose', 10)
        self._sent: tuple[Vector, float] | None = None
        self._handle: Vector | None = None
        self._refused: float | None = None
        self._random = np.random.default_rng()

    def tick(self) -> None:
        """Put the handle where it belongs, and tell of goals that were refused."""
        self._place_handle(self._markers())
        self._tell_refusals()

    @property
    def is_possible(self) -> bool:
        """Whether somebody takes goals now, and in the frame of the page."""
        return self._markers() is not None

    def send(self, goal: Vector) -> None:
        """Send the arm to ``goal`` (3,) [m], in the frame of the page."""
        if not self.is_possible:
            frame = self._page.frame or 'none, since no arm is drawn'
            self._page.notify(
                'No goal was sent', f'policy_node is not active, or not in frame {frame}'
            )
            return
        message = PoseStamped()
        message.header.frame_id = self._page.frame
        message.header.stamp = self._node.get_clock().now().to_msg()
        place = message.pose.position
        place.x, place.y, place.z = goal.tolist()
        # Height 0 would stand for that of the tool.
        place.z = place.z or 1e-9
        message.pose.orientation.w = 1.0
        self._publisher.publish(message)
        self._sent = goal, time.monotonic()

    def send_any(self) -> None:
        """Send the arm somewhere in its workspace."""
        array = self._markers()
        space = None if array is None else extent_of(array, 'workspace')
        if space is not None:
            self.send(self._random.uniform(*space))

    def _markers(self) -> MarkerArray | None:
        """Return what policy_node shows, if it takes goals in the frame of the page."""
        array = self._nodes.policy_markers.latest
        if array is None or not self._nodes.is_active or frame_of(array) != self._page.frame:
            return None
        return array

    def _place_handle(self, array: MarkerArray | None) -> None:
        if array is None:
            self._handle = self._sent = None
            self._page.place_goal(None)
            return
        goal = place_of(array, 'goal')
        if self._sent is not None:
            wanted, at = self._sent
            is_taken = goal is not None and np.abs(goal - wanted).max() < SAME
            if not is_taken and time.monotonic() - at < TAKEN:
                return
            self._sent = None
        if goal is None and self._handle is None:
            space = extent_of(array, 'workspace')
            goal = None if space is None else (space[0] + space[1]) / 2.0
        # Where there is no goal any more, the handle stays where the last one was.
        self._handle = self._handle if goal is None else goal
        self._page.place_goal(self._handle)

    def _tell_refusals(self) -> None:
        refused = self._nodes.number(POLICY, 'goals refused')
        if refused is None:  # not heard of now
            return
        if self._refused is not None and refused > self._refused:
            why = self._nodes.figures(POLICY).get('last refusal', '')
            self._page.notify('The goal was not taken', why)
        self._refused = refused
