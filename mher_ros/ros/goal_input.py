"""Goals for the tool, as RViz and scripts send them."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from geometry_msgs.msg import PointStamped, PoseStamped
from mher_ros.errors import MherError
from mher_ros.ros.frames import Frames, NotYetError
from mher_ros.ros.interactive_goal import InteractiveGoal
from mher_ros.ros.wire import MessageError
import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

__all__ = ['GoalInput']

Vector = NDArray[np.float64]
OnGoal = Callable[[Vector, str], ArrayLike]
"""
Takes a goal (3,) [m] in the base frame and where it comes from.

Returns the goal (3,) as it was accepted; raises a MherError that says why if it was not.
"""

DEPTH = 10
REPEAT = 1.0
"""Time after which the same refusal is told again [s]."""
PATIENCE = 0.5
"""Time that a goal waits for the transform at its stamp [s]."""
RETRY = 0.02
"""Time between two looks for it [s]."""
ROUNDING = 1e-6
"""Goals that are nearer to each other are the same [m]."""
STEADY = Clock(clock_type=ClockType.STEADY_TIME)


class GoalInput:
    """
    Topics ``goal_pose`` and ``clicked_point``, and a marker that people drag.

    The marker is wherever the goal is: it moves to one that came from elsewhere, and goes back
    if one is refused. Only positions count; how the tool is turned does not.

    A goal in another frame is placed by the transform at its stamp. If that has not come yet, the
    goal waits for it, without holding up anything else, until ``PATIENCE`` is over or another
    goal comes.
    """

    def __init__(
        self,
        node: Node,
        frame: str,
        on_goal: OnGoal,
        tool: Callable[[], Vector | None],
        start: ArrayLike,
        radius: float,
    ) -> None:
        """
        Hand goals in the arm's base frame, ``frame``, to ``on_goal``.

        ``tool`` tells where the tool is (3,) [m], or None while that is not known. The marker
        waits at ``start`` (3,) [m] for the first goal. Its ``radius`` [m] should exceed that of
        the ball that shows the goal: RViz's mouse finds only what lies outside.
        """
        self.refused = 0
        """Messages that were of no use, and goals that were not accepted."""
        self.last_refusal = ''
        """Why the last of them was not."""
        self._node, self._logger = node, node.get_logger()
        self._on_goal, self._tool = on_goal, tool
        self._goal = np.array(start, np.float64)
        self._told, self._told_at = '', 0.0
        self._frames = Frames(node, frame)
        self._waiting: tuple[Callable[[], Vector], str, float] | None = None
        self._retry = node.create_timer(RETRY, self._try, clock=STEADY, autostart=False)
        self._marker = InteractiveGoal(
            node,
            frame,
            self._goal,
            radius,
            on_release=lambda position: self._offer(position, 'the goal marker'),
            on_refusal=lambda error: self._refuse(error, 'the goal marker'),
        )
        self._subscriptions = [
            node.create_subscription(PoseStamped, 'goal_pose', self._take_pose, DEPTH),
            node.create_subscription(PointStamped, 'clicked_point', self._take_point, DEPTH),
        ]

    @property
    def topics(self) -> str:
        """Full names of the topics, remappings applied."""
        return ' and '.join(one.topic_name for one in self._subscriptions)

    def show(self, goal: ArrayLike) -> None:
        """Move the marker to a goal (3,) [m] that came another way."""
        self._goal = np.array(goal, np.float64)
        self._marker.place(self._goal)

    def forget(self) -> None:
        """Drop a goal that still waits for its transform."""
        self._waiting = None

    def close(self) -> None:
        """Take no more goals."""
        self._marker.close()
        self._node.destroy_timer(self._retry)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._frames.close()

    def _take_pose(self, message: PoseStamped) -> None:
        place, turn = message.pose.position, message.pose.orientation
        flat = place.z == 0.0 and turn.x == turn.y == 0.0

        def in_base() -> Vector:
            _check_finite(turn.w, turn.x, turn.y, turn.z)
            return self._in_base(message.header, place, flat)

        self._take(in_base, 'goal_pose')

    def _take_point(self, message: PointStamped) -> None:
        self._take(lambda: self._in_base(message.header, message.point), 'clicked_point')

    def _take(self, in_base: Callable[[], Vector], source: str) -> None:
        """Offer the goal (3,) that ``in_base`` returns, at once or when it can be placed."""
        self._waiting = in_base, source, time.monotonic() + PATIENCE
        self._try()

    def _try(self) -> None:
        """Offer the goal that waits, if it can be placed by now."""
        self._retry.cancel()
        if self._waiting is None:
            return
        in_base, source, give_up_at = self._waiting
        try:
            position = in_base()
        except MessageError as error:
            if isinstance(error, NotYetError) and time.monotonic() < give_up_at:
                self._retry.reset()
            else:
                self._refuse(error, source)
        else:
            self._offer(position, source)

    def _in_base(self, header: Any, place: Any, flat: bool = False) -> Vector:
        """Return a place (3,) in the base frame; a ``flat`` one gets the height of the tool."""
        _check_finite(place.x, place.y, place.z)
        rotation, translation = self._frames.placement(header)
        position = np.array([place.x, place.y, place.z])
        if flat:
            tool = self._tool()
            if tool is None:
                raise MessageError(
                    'a height is expected as long as that of the tool is not known, got 0 m'
                )
            # Heights are those of the frame that the goal is told in: an arm may hang on a wall.
            position[2] = ((tool - translation) @ rotation)[2]
            self._logger.info(
                'goal_pose at height 0 m, as 2D Goal Pose of RViz sends it: '
                f"the tool's height of {position[2]:.3f} m is kept"
            )
        return rotation @ position + translation

    def _offer(self, position: Vector, source: str) -> None:
        try:
            self._goal = np.array(self._on_goal(position, source), np.float64)
        except MherError as error:
            self._refuse(error, source)
        else:
            self._told = ''
            off = float(np.linalg.norm(self._goal - position))
            self._logger.info(f'goal from {source}: {_text(self._goal)} m')
            if off > ROUNDING:
                self._logger.warning(
                    f'the goal that was asked for, {_text(position)} m, lies outside: it is '
                    f'projected {off:.3f} m, and distance and reached are of the projected one'
                )
        self._marker.place(self._goal)

    def _refuse(self, error: MherError, source: str) -> None:
        self.refused += 1
        self.last_refusal = str(error)
        text, now = f'refused a goal from {source}: {error}', time.monotonic()
        if text != self._told or now - self._told_at > REPEAT:
            self._told, self._told_at = text, now
            self._logger.warning(text)


def _check_finite(*numbers: float) -> None:
    if not np.isfinite(numbers).all():
        raise MessageError(f'finite numbers are expected, got {list(numbers)}')


def _text(position: Vector) -> str:
    return '(' + ', '.join(f'{part:.3f}' for part in position) + ')'
