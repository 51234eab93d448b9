"""Clients of the nodes that move an arm: goals, stop, clear."""

from collections.abc import Callable, Iterator
import math
import time

from geometry_msgs.msg import PointStamped
from mher_ros.control.safety_monitor import Status
from mher_ros.errors import ArmError
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.bringup.node_process import client_node
from mher_ros.ros.common.status import (
    ACCEPTED,
    DeploymentStatus,
    Point,
    point_of,
    subscribe_status,
)
from numpy.typing import ArrayLike
import rclpy
from rclpy.client import Client
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

AS_RVIZ = QoSProfile(depth=5)  # how RViz publishes clicked points
GONE = 10.0  # time without an answer after which the node counts as ended [s]
CHECK = 0.05  # longest time between two checks of the clock [s]
POLICY, TRAIN = 'policy_node', 'train_node'
OWNERS = {'stop': (POLICY, TRAIN), 'clear': (POLICY,)}  # who offers which service
FINDING = 10.0  # time within which a running node is found [s]
ANSWER = 5.0  # time within which it answers a call [s]


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
        """Wait until policy_node is active and has states; ArmError after ``timeout`` [s]."""
        if not self._wait(self._is_ready, timeout):
            late = f'policy_node has not become ready for goals within {timeout:g} s'
            raise ArmError(f'{late}: its state is {self.status.state or "not known"}')

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

    def _is_ready(self) -> bool:
        is_moved = self.status.is_active and self.status.state != Status.NO_STATE.code
        return is_moved and self._goals.get_subscription_count() > 0

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


def call_arm_nodes(namespace: str, service: str) -> str:
    """
    Call ``stop`` or ``clear`` of the nodes that move an arm in ``namespace``; return the answers.

    A stop goes to policy_node and train_node, if they run.
    """
    with client_node('mher', namespace) as node:
        executor = SingleThreadedExecutor(context=node.context)
        asked = [(client, client.call_async(Trigger.Request())) for client in _find(node, service)]
        answers = []
        for client, future in asked:
            rclpy.spin_until_future_complete(node, future, executor, ANSWER)
            if not future.done():
                raise ArmError(f'{client.srv_name} has not answered within {ANSWER:g} s')
            if not future.result().success:
                raise ArmError(f'{client.srv_name} failed: {future.result().message}')
            answers.append(str(future.result().message))
        return '; '.join(answers)


def send_goal(
    namespace: str, frame: str, goal: tuple[float, float, float], wait: float
) -> Iterator[str]:
    """
    Send a goal [m] in ``frame`` to the policy_node in ``namespace``, and yield its progress.

    ``frame``: empty means the arm's base frame. ``wait``: time to wait until the goal is reached
    [s]; 0: only until it is accepted. GoalError: it was refused or dropped; ArmError: it was not
    reached, or there was no answer.
    """
    with client_node('mher', namespace) as node:
        _find(node, 'clear')  # not `stop`, whose error is about an arm that was not stopped
        client = GoalClient(frame, node)
        client.wait_until_ready(FINDING)
        x, y, z = client.go_to(goal)
        yield f'goal: ({x:.3f}, {y:.3f}, {z:.3f}) m'
        if not wait:
            return
        if not client.wait_until_reached(wait):
            raise ArmError(f'the goal was not reached within {wait:g} s')
        yield f'reached, {1000.0 * client.distance:.1f} mm away'


def _find(node: Node, service: str) -> list[Client]:
    """Wait for a service and return the clients that are ready; ArmError if there is none."""
    owners = OWNERS[service]
    clients = [node.create_client(Trigger, f'{owner}/{service}') for owner in owners]
    deadline = time.monotonic() + FINDING
    while not any(client.service_is_ready() for client in clients):
        if time.monotonic() > deadline:
            names = node.get_node_names_and_namespaces()
            others = sorted(namespace for name, namespace in names if name in owners)
            hint = f'; there is one in {", ".join(others)}: --namespace' if others else ''
            if service == 'stop':
                hint += '; THE ARM WAS NOT STOPPED: use the emergency stop'
            raise ArmError(
                f'no {" or ".join(owners)} was found in namespace {node.get_namespace()} of ROS '
                f'domain {node.context.get_domain_id()}{hint}'
            )
        time.sleep(CHECK)
    return [client for client in clients if client.service_is_ready()]
