"""A client of policy_node: sends goals and waits until they are reached."""

from collections.abc import Callable
import math
import time

from geometry_msgs.msg import PointStamped
from mher_ros.errors import ArmError
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.status import (
    ACCEPTED,
    DeploymentStatus,
    Point,
    point_of,
    subscribe_status,
)
from numpy.typing import ArrayLike
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile

AS_RVIZ = QoSProfile(depth=5)  # how RViz publishes clicked points
GONE = 10.0  # time without an answer after which the node counts as ended [s]
CHECK = 0.05  # longest time between two checks of the clock [s]


class GoalClient:
    """Sends goals like RViz's Publish Point, and subscribes to policy_node's status."""

    def __init__(self, frame: str, node: Node | None = None, policy: str = 'policy_node') -> None:
        """Send goals in ``frame``, the base frame of the arm, to the node called ``policy``."""
        self.node = node or rclpy.create_node('goal_client')
        # It spins its node itself: others must not.
        self._executor = SingleThreadedExecutor(context=self.node.context)
        self._executor.add_node(self.node)
        self._frame = frame
        self._goals = self.node.create_publisher(PointStamped, 'clicked_point', AS_RVIZ)
        self.status = DeploymentStatus()  # the last one received
        self.goal: Point | None = None  # the goal as it was accepted [m]; None until it is
        self._sent: Point | None = None
        self._answers, self._answer, self._answer_text = 0, '', ''
        subscribe_status(self.node, DeploymentStatus, policy, self._take)

    @property
    def distance(self) -> float:
        """Distance of the tool from its goal [m]; NaN: not known."""
        distance = self.status.distance
        return math.nan if distance is None or self.goal is None else distance

    @property
    def is_reached(self) -> bool:
        """Whether the tool is at the last goal that was sent."""
        return self.goal is not None and self.status.goal == self.goal and self.status.reached

    def wait_until_ready(self, timeout: float = 30.0) -> None:
        """Wait until policy_node is active; ArmError after the timeout [s]."""
        takers = self._goals.get_subscription_count
        if not self._wait(lambda: self.status.is_active and takers() > 0, timeout):
            late = f'policy_node has not become active within {timeout:g} s'
            raise ArmError(f'{late}: it is {self.status.state or "not there"}')

    def go_to(self, position: ArrayLike) -> Point:
        """Send a goal (3,) [m]; return it as accepted. GoalError: refused, ArmError: no answer."""
        sent = point_of(position)
        self.goal, self._answer = None, ''
        self._sent, self._answers = sent, self.status.answers
        if sent is None:
            raise GoalError(f'finite numbers are expected, got {position!r}', Refusal.BAD_MESSAGE)
        message = PointStamped()  # its stamp of 0 means the newest transform
        message.header.frame_id = self._frame
        message.point.x, message.point.y, message.point.z = sent
        self._goals.publish(message)
        if not self._wait(lambda: bool(self._answer), GONE):
            raise ArmError(
                f'no answer within {GONE:g} s: the goal may still be accepted and move the '
                'arm (`mher stop` prevents it)'
            )
        if self.goal is None:
            text = f'the goal was refused ({self._answer}): {self._answer_text}'
            raise GoalError(text, self._answer)
        return self.goal

    def wait_until_reached(self, timeout: float) -> bool:
        """Return whether the goal is reached within the timeout [s]; GoalError: it was dropped."""
        if self.goal is None:
            return False
        self._wait(lambda: self.is_reached or self.status.goal != self.goal, timeout)
        if self.status.goal is None:
            code = self.status.last_drop
            raise GoalError(f'the goal was dropped ({code}): {self.status.reason}', code)
        if self.status.goal != self.goal:
            raise GoalError('the goal was dropped: another one was sent', Refusal.SUPERSEDED)
        return self.is_reached

    def spin(self, seconds: float) -> None:
        """Process messages for a time [s]."""
        self._wait(lambda: False, seconds)

    def close(self) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()

    def _wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Process messages until ``is_over``; return whether it is within ``seconds``."""
        deadline = time.monotonic() + seconds
        while not is_over():
            left = deadline - time.monotonic()
            if left <= 0.0:
                return False
            self._executor.spin_once(timeout_sec=min(left, CHECK))
        return True

    def _take(self, status: DeploymentStatus) -> None:
        self.status = status
        self._answers = min(self._answers, status.answers)  # policy_node was restarted
        answered = status.answered_position, status.answered_frame
        is_ours = status.answers > self._answers and answered == (self._sent, self._frame)
        if is_ours and not self._answer:
            self._answer, self._answer_text = status.answer, status.answer_text
            self.goal = status.accepted_goal if status.answer == ACCEPTED else None
