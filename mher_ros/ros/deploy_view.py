"""What policy_node shows, in RViz and on the page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
import math

from mher_ros.ros.markers import deployment_markers
import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

__all__ = ['DeployView', 'Motion']

RATE = 10.0
"""Messages in a second, if somebody looks."""
TRAIL = 200
"""Positions of the tool that its trail shows."""
MOVED = 1e-3
"""Distance from the last position of the trail that makes a new one [m]."""


@dataclass(frozen=True)
class Motion:
    """What an arm is up to, in its base frame."""

    tool: NDArray[np.float64] | None = None
    """Where the tool is (3,) [m], if known."""
    velocity: NDArray[np.float64] | None = None
    """What is commanded (3,) [m/s], or would be if commands went out."""
    goal: NDArray[np.float64] | None = None
    """Where it is to go (3,) [m], if anywhere."""
    distance: float = math.nan
    """How far the tool is from there [m]; NaN where one of them is not known."""
    reached: bool = False


class DeployView:
    """The goal, the workspace, the tool's box, how the tool is to move, and where it has been."""

    def __init__(
        self,
        node: Node,
        frame: str,
        threshold: float,
        workspace: tuple[ArrayLike, ArrayLike],
        box: tuple[ArrayLike, ArrayLike],
        look: Callable[[], Motion],
    ) -> None:
        """
        Ask ``look`` for what there is to show, and only if somebody sees it.

        ``threshold`` [m] is the distance of success; boxes are low and high corners (3,) [m].
        """
        self._node, self._frame, self._threshold = node, frame, threshold
        self._workspace, self._box, self._look = workspace, box, look
        self._trail: deque[NDArray[np.float64]] = deque(maxlen=TRAIL)
        self._publisher = node.create_publisher(MarkerArray, '~/markers', 1)
        self._timer = node.create_timer(1.0 / RATE, self._show)

    def begin_trail(self) -> None:
        """Forget where the tool has been; any thread may call it."""
        self._trail.clear()

    def close(self) -> None:
        """Show nothing more."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _show(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            self._trail.clear()  # What follows would be joined to it by a line.
            return
        motion = self._look()
        trail = self._follow(motion.tool)
        self._publisher.publish(
            deployment_markers(
                self._frame,
                self._threshold,
                self._workspace,
                self._box,
                goal=motion.goal,
                reached=motion.reached,
                tool=motion.tool,
                velocity=motion.velocity,
                trail=trail,
            )
        )

    def _follow(self, tool: NDArray[np.float64] | None) -> list[NDArray[np.float64]]:
        trail = list(self._trail)
        # An arm that rests at its goal keeps the way that led there.
        if tool is not None and (not trail or np.linalg.norm(tool - trail[-1]) > MOVED):
            self._trail.append(tool.copy())
        return list(self._trail)
