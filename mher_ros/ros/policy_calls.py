"""What a person asks of a policy_node from the command line: to go to a goal, to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import time

from diagnostic_msgs.msg import DiagnosticArray
from mher_ros.errors import ArmError
from mher_ros.ros.goal_client import GoalClient
import rclpy
from rclpy.client import Client
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

__all__ = ['call_policy_node', 'send_goal']

POLICY = 'policy_node'
FINDING = 10.0
"""Time within which a node that is there is found [s]."""
ANSWER = 5.0
"""Time within which it answers a call [s]."""
ACCEPTING = 2.0
"""Time within which it accepts a goal, or has reported why it does not [s]."""
GLANCE = 0.02
"""Longest time without a look at what has come [s]."""
TWICE = 2
"""Reports without a goal that say it was dropped; the first may have been under way."""


def call_policy_node(namespace: str, service: str) -> str:
    """Call ``stop`` or ``clear`` of the policy_node in ``namespace``, and return its answer."""
    with _node(namespace) as node:
        client = _find(node, service)
        executor = SingleThreadedExecutor(context=node.context)
        executor.add_node(node)
        future = client.call_async(Trigger.Request())
        deadline = time.monotonic() + ANSWER
        while not future.done():
            if time.monotonic() > deadline:
                raise ArmError(f'{client.srv_name} has not answered within {ANSWER:g} s')
            executor.spin_once(timeout_sec=GLANCE)
        answer = future.result()
        if not answer.success:
            raise ArmError(f'{client.srv_name} failed: {answer.message}')
        return str(answer.message)


def send_goal(
    namespace: str, frame: str, goal: tuple[float, float, float], wait: float
) -> Iterator[str]:
    """
    Send a goal [m] in ``frame`` to the policy_node in ``namespace``, and yield what comes of it.

    ``frame`` may be empty: that of the arm's base. ``wait``: time to wait until the tool is there
    [s]; 0: only until the goal is accepted. ArmError if it is not, or if the tool does not get
    there.
    """
    with _node(namespace) as node:
        _find(node, 'clear')  # No goal can stop an arm, so an error should not speak of it.
        client, reports = GoalClient(frame, node), _Reports(node)
        client.wait_until_ready(FINDING)
        _wait(client, FINDING, lambda: reports.text != '')
        refused = reports.refused
        client.go_to(goal)
        _wait(client, ACCEPTING, lambda: client.goal is not None or reports.refused > refused)
        if client.goal is None:
            if reports.refused > refused:
                raise ArmError(f'the goal was refused: {reports.last_refusal}')
            raise ArmError(
                f'no answer came within {ACCEPTING:g} s: the goal may still be accepted and move '
                'the arm (`mher stop` prevents it)'
            )
        x, y, z = client.goal
        yield f'goal: ({x:.3f}, {y:.3f}, {z:.3f}) m'
        if not wait:
            return
        reports.without_goal = 0
        _wait(client, wait, lambda: client.is_reached or reports.without_goal >= TWICE)
        if not client.is_reached:
            dropped = reports.without_goal >= TWICE
            why = f'dropped: {reports.text}' if dropped else f'not reached within {wait:g} s'
            raise ArmError(f'the goal was {why}')
        yield f'reached, {1000.0 * client.distance:.1f} mm away'


@contextlib.contextmanager
def _node(namespace: str) -> Iterator[Node]:
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield rclpy.create_node('mher', context=context, namespace=namespace)
    finally:
        context.try_shutdown()


def _find(node: Node, service: str) -> Client:
    """Return a client of policy_node's service once that is there; ArmError if it is not."""
    client = node.create_client(Trigger, f'{POLICY}/{service}')
    deadline = time.monotonic() + FINDING
    while not client.service_is_ready():
        if time.monotonic() > deadline:
            names = node.get_node_names_and_namespaces()
            others = sorted(namespace for name, namespace in names if name == POLICY)
            hint = f'; there is one in {", ".join(others)}: --namespace' if others else ''
            not_stopped = '; THE ARM WAS NOT STOPPED: use the emergency stop'
            raise ArmError(
                f'no {POLICY} was found in namespace {node.get_namespace()} of ROS domain '
                f'{node.context.get_domain_id()}{hint}{not_stopped if service == "stop" else ""}'
            )
        time.sleep(GLANCE)
    return client


def _wait(client: GoalClient, seconds: float, is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not is_over() and time.monotonic() < deadline:
        client.spin(GLANCE)


class _Reports:
    """What policy_node says of its goals on /diagnostics."""

    def __init__(self, node: Node) -> None:
        self._name = f'{node.get_namespace()}/{POLICY}'.lstrip('/')
        self.text = ''
        """What it is doing, and why not."""
        self.last_refusal = ''
        """Why the last goal that was refused was."""
        self.refused = 0
        """How many were."""
        self.without_goal = 0
        """Reports without a goal, one after the other."""
        node.create_subscription(DiagnosticArray, '/diagnostics', self._take, 50)

    def _take(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name == self._name:
                told = {pair.key: pair.value for pair in status.values}
                self.text, self.last_refusal = status.message, told.get('last refusal', '')
                self.refused = int(told.get('goals refused', '0'))
                self.without_goal = 0 if told.get('goal') else self.without_goal + 1
