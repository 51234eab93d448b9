"""Requests of the command line to nodes that move an arm: goal, stop, clear."""

from collections.abc import Iterator
import contextlib
import time

from mher_ros.errors import ArmError
from mher_ros.ros.deploy.goal_client import GoalClient
import rclpy
from rclpy.client import Client
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

POLICY, TRAIN = 'policy_node', 'train_node'
OWNERS = {'stop': (POLICY, TRAIN), 'clear': (POLICY,)}  # who offers which service
FINDING = 10.0  # time within which a running node is found [s]
ANSWER = 5.0  # time within which it answers a call [s]
CHECK = 0.02  # time between two checks [s]


def call_arm_nodes(namespace: str, service: str) -> str:
    """
    Call ``stop`` or ``clear`` of the nodes that move an arm in ``namespace``; return the answers.

    A stop goes to policy_node and train_node, if they run.
    """
    with _node(namespace) as node:
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
    with _node(namespace) as node:
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


@contextlib.contextmanager
def _node(namespace: str) -> Iterator[Node]:
    context = Context()
    rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
    try:
        yield rclpy.create_node('mher', context=context, namespace=namespace)
    finally:
        context.try_shutdown()


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
