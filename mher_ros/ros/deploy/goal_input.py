"""Goals of the tool from RViz and other nodes."""

from collections.abc import Callable
import dataclasses
import time
from typing import Any, cast, NamedTuple

from geometry_msgs.msg import PointStamped, PoseStamped
from mher_ros.control.safety_monitor import Status
from mher_ros.robots.workspace import GoalError, point_text, Refusal
from mher_ros.ros.common.arm_clock import STEADY, SteadyTimes
from mher_ros.ros.common.frames import Frames, NotYetError
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.polled_topic import earliest_time
from mher_ros.ros.common.raw_messages import MessageError
from mher_ros.ros.common.status import ACCEPTED, DeploymentStatus, point_of
from mher_ros.ros.deploy.interactive_goal import InteractiveGoal
import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.node import Node

Vector = NDArray[np.float64]
OnGoal = Callable[[Vector, str, int], ArrayLike]
"""
Takes a goal (3,) [m] in the base frame, its source, and when it was sent (``time.monotonic_ns``).

Returns the goal (3,) as accepted; GoalError: it is refused. The stops of the arm have to be
compared with the time of sending while no further one can come, with ``check_sent``.
"""

DEPTH = 10
REPEAT = 1.0  # time after which the same refusal is logged again [s]
PATIENCE = 0.5  # time for which a goal waits for the transform at its stamp [s]
RETRY = 0.02  # time between two checks for it [s]
LOOK = 1.0  # time between two checks whether the system clock was set [s]
ROUNDING = 1e-6  # distance up to which goals are the same [m]
LONGEST = 300  # characters of a frame or a text that are published


class _Goal(NamedTuple):
    """A goal that was received."""

    source: str
    frame: str
    position: Vector | None = None
    """(3,) [m] in ``frame``, as received; None: not known."""
    header: Any = None
    """Header of the message: frame, and stamp of the transform."""
    turn: Any = None
    """Orientation, if the message has one."""
    sent: int = 0
    """When it was sent, or received if that is earlier (``time.monotonic_ns``)."""
    give_up_at: float = 0.0
    """Time (``time.monotonic``) until which it waits for a transform."""


class GoalInput:
    """
    Goals on the topics ``goal_pose`` and ``clicked_point``, and from an interactive marker.

    The marker shows the goal: it moves to each accepted goal, and back if a goal is refused. Only
    positions count; orientations are ignored.

    A goal in another frame is transformed with the transform at its stamp. If that has not been
    received yet the goal waits for it, without delaying anything else, until ``PATIENCE`` is over
    or there is another goal. Every goal is answered in ``status``, except that of more than
    ``DEPTH`` goals at once the older ones are lost.
    """

    def __init__(
        self,
        node: Node,
        status: DeploymentStatus,
        on_goal: OnGoal,
        tool: Callable[[], Vector | None],
        start: ArrayLike,
        radius: float,
        on_answer: Callable[[], None] = lambda: None,
        counts_from: Callable[[], int] = lambda: 0,
    ) -> None:
        """
        Pass goals in the arm's base frame, that of ``status``, to ``on_goal``.

        ``tool`` returns the position of the tool (3,) [m], or None if it is not known. The marker
        is at ``start`` (3,) [m] until the first goal. Its ``radius`` [m] should exceed that of the
        goal's ball, so that RViz can pick it. ``on_answer`` is called after each answer. Goals
        sent before ``counts_from`` (``time.monotonic_ns``) do not count: there was a stop.
        """
        self.status = status
        """With the numbers of goals and the last answer; invalid messages count as refused."""
        self._node, self._logger = node, node.get_logger()
        self._on_goal, self._tool, self._on_answer = on_goal, tool, on_answer
        self._counts_from = counts_from
        self._goal = np.array(start, np.float64)
        self._told, self._told_at = '', 0.0
        self.frames = Frames(node, status.frame)
        self._waiting: _Goal | None = None
        self._times = SteadyTimes()
        self._look = node.create_timer(LOOK, self._times.look, clock=STEADY)
        self._retry = node.create_timer(RETRY, self._try, clock=STEADY, autostart=False)
        self._marker = InteractiveGoal(
            node,
            status.frame,
            self._goal,
            radius,
            on_release=self._take_released,
            on_refusal=self._refuse_marker,
        )
        self._subscriptions = [
            node.create_subscription(PoseStamped, 'goal_pose', cast(Any, self._take_pose), DEPTH),
            node.create_subscription(
                PointStamped, 'clicked_point', cast(Any, self._take_point), DEPTH
            ),
        ]

    @property
    def topics(self) -> str:
        """Full names of the topics, remappings applied."""
        return ' and '.join(one.topic_name for one in self._subscriptions)

    def close(self) -> None:
        """Close topics and marker."""
        self._marker.close()
        self._node.destroy_timer(self._look)
        self._node.destroy_timer(self._retry)
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self.frames.close()

    def _take_pose(self, message: PoseStamped, info: Any) -> None:
        pose = message.pose
        self._take('goal_pose', message.header, info, pose.position, pose.orientation)

    def _take_point(self, message: PointStamped, info: Any) -> None:
        self._take('clicked_point', message.header, info, message.point)

    def _take_released(self, position: Vector, sent: int) -> None:
        self._supersede()
        goal = _Goal('the goal marker', self.frames.base, position, sent=self._times.of(sent))
        self._offer(goal, position)

    def _refuse_marker(self, error: MessageError) -> None:
        goal = _Goal('the goal marker', self.frames.base)
        self._refuse(GoalError(str(error), Refusal.BAD_MESSAGE), goal)

    def _take(self, source: str, header: Any, info: Any, place: Any, turn: Any = None) -> None:
        """Offer a goal, at once or when it can be transformed to the base frame."""
        self._supersede()
        position, late = np.array(numbers_of(place)), time.monotonic() + PATIENCE
        sent = self._times.of(earliest_time(info))
        self._waiting = _Goal(source, header.frame_id, position, header, turn, sent, late)
        self._try()

    def _supersede(self) -> None:
        goal, self._waiting = self._waiting, None
        if goal is not None:
            self._refuse(GoalError('another goal was received', Refusal.SUPERSEDED), goal)

    def _try(self) -> None:
        """Offer the waiting goal, if it can be transformed now."""
        self._retry.cancel()
        goal, self._waiting = self._waiting, None
        if goal is None or goal.position is None:
            return
        try:
            check_sent(goal.sent, self._counts_from())
            position = self._in_base(goal.position.copy(), goal.header, goal.turn)
        except GoalError as error:
            if isinstance(error, NotYetError) and time.monotonic() < goal.give_up_at:
                self._waiting = goal
                self._retry.reset()
            else:
                self._refuse(error, goal)
        else:
            self._offer(goal, position)

    def _in_base(self, position: Vector, header: Any, turn: Any) -> Vector:
        """Return a position (3,) in the base frame; a 2D pose gets the height of the tool."""
        numbers = position.tolist()
        if turn is not None:
            numbers += [*numbers_of(turn), turn.w]
        if not np.isfinite(numbers).all():
            raise GoalError(f'finite numbers are expected, got {numbers}', Refusal.BAD_MESSAGE)
        rotation, translation = self.frames.placement(header)
        if turn is not None and position[2] == turn.x == turn.y == 0.0:
            tool = self._tool()
            if tool is None:
                raise GoalError(
                    'a height is expected while the height of the tool is not known, got 0 m',
                    Status.NO_STATE.code,
                )
            # Height in the frame of the goal: the arm may be mounted on a wall.
            position[2] = ((tool - translation) @ rotation)[2]
            self._logger.info(
                'goal_pose at height 0 m, as 2D Goal Pose of RViz sends it: '
                f'the tool keeps its height of {position[2]:.3f} m'
            )
        return rotation @ position + translation

    def _offer(self, goal: _Goal, position: Vector) -> None:
        """Offer a goal at ``position`` (3,) [m] in the base frame."""
        try:
            self._goal = np.array(self._on_goal(position, goal.source, goal.sent), np.float64)
        except GoalError as error:
            self._refuse(error, goal)
        else:
            self._told = ''
            off = float(np.linalg.norm(self._goal - position))
            text = f'goal from {goal.source}: {point_text(self._goal)} m'
            self._logger.info(text)
            self._answer(goal, ACCEPTED, text)
            if off > ROUNDING:
                self._logger.warning(
                    f'goal {point_text(position)} m is outside: it was projected by {off:.3f} m; '
                    'distance and reached refer to the projected goal'
                )
        self._marker.place(self._goal)

    def _refuse(self, error: GoalError, goal: _Goal) -> None:
        text, now = f'refused a goal from {goal.source}: {error}'[:LONGEST], time.monotonic()
        if text != self._told or now - self._told_at > REPEAT:
            self._told, self._told_at = text, now
            self._logger.warning(text)
        self._answer(goal, error.code, str(error))

    def _answer(self, goal: _Goal, code: str, text: str) -> None:
        is_accepted, before = code == ACCEPTED, self.status
        self.status = dataclasses.replace(
            before,
            accepted=before.accepted + is_accepted,
            refused=before.refused + (not is_accepted),
            accepted_goal=point_of(self._goal) if is_accepted else before.accepted_goal,
            answer=code,
            answer_text=text[:LONGEST],
            answered_position=point_of(goal.position),
            answered_frame=goal.frame[:LONGEST],  # a sender may give a frame any length
        )
        self._on_answer()


def check_sent(sent: int, counts_from: int) -> None:
    """Refuse a goal that was sent before ``counts_from``; both by ``time.monotonic_ns``."""
    late = 1e-9 * (counts_from - sent)
    if late >= 0.0:
        raise GoalError(
            f'it was sent {late:.3f} s before the arm was stopped, cleared or activated; if not, '
            "the clocks of the sender's machine and this one differ",
            Status.STOPPED.code,
        )
