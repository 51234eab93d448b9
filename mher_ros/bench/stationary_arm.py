"""A fake arm that does not move, and publishes its joint states to several nodes in turn."""

from collections import deque
from collections.abc import Mapping
import subprocess
import time

from geometry_msgs.msg import PointStamped
from mher_ros.control.safety_monitor import Status
from mher_ros.errors import ArmError
from mher_ros.robots.robot import Topics
from mher_ros.ros.common.arm_output import MESSAGES
from mher_ros.ros.common.polled_topic import LATCHED, PolledTopic, RELIABLE_QUEUE
from mher_ros.ros.common.raw_messages import JointStateWriter
from mher_ros.ros.common.status import DeploymentStatus, subscribe_status
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf_writer import urdf_of
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import String

ROBOT, TASK = 'fetch', 'fetch_reach'
JITTER = 1e-6  # change of each joint between two states, like the noise of a real encoder [rad]
START_TIMEOUT = 60.0  # time within which nodes must answer [s]
CHECK_PERIOD = 0.05  # time between two checks of the nodes' status [s]
GOAL_PERIOD = 1.0  # time after which a node without a goal is sent it again [s]


class StationaryArm:
    """One arm behind the topics of each of several namespaces."""

    # The first namespace is that of a policy_node, whose goal is the position of the tool.
    # Commands are received, as by any arm, but have no effect.
    def __init__(
        self,
        context: Context,
        nodes: Mapping[str, subprocess.Popen[bytes]],
        output: str,
        rate: float,
    ) -> None:
        """``nodes``: processes by namespace; ``rate``: joint states per second for each."""
        self._nodes, self._period = nodes, 1.0 / rate
        plant = JointPlant(TASK)
        self._node = node = rclpy.create_node('stationary_arm', context=context)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._writer = JointStateWriter(plant.joint_names, plant.frame)
        self._positions, self._velocities = plant.joint_state()
        topics = Topics()
        model = String(data=urdf_of(plant.model, 'fetch', plant.joint_names, plant.frame))
        self._states, self._commands, self._models = {}, [], []
        for namespace in nodes:
            topic = f'{namespace}/{topics.joint_states}'
            self._states[namespace] = node.create_publisher(JointState, topic, RELIABLE_QUEUE)
            topic = f'{namespace}/{topics.commands[output]}'
            self._commands.append(PolledTopic(node, MESSAGES[output], topic))
            topic = f'{namespace}/{topics.robot_description}'
            self._models.append(node.create_publisher(String, topic, LATCHED))
            self._models[-1].publish(model)
        first = next(iter(nodes))
        self._goals = node.create_publisher(PointStamped, f'{first}/clicked_point', 5)
        self._goal = PointStamped()
        self._goal.header.frame_id = plant.frame
        point = self._goal.point
        point.x, point.y, point.z = plant.tool_pose()[0].tolist()
        self._status = deque([DeploymentStatus(reason='no status received')], maxlen=1)
        subscribe_status(node, DeploymentStatus, f'{first}/policy_node', self._status.append)
        self._published = 0
        self._next_check = self._next_goal = 0.0

    def wait_for_answers(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while not self._is_answering:
            if time.monotonic() > deadline:
                raise ArmError(
                    f'policy_node does not answer joint states within {START_TIMEOUT:g} s: '
                    f'{self._status[0].reason}'
                )
            self.publish_states(10)

    def publish_states(self, count: int) -> dict[str, list[int]]:
        """Publish joint states to each node; return the times [ns] by namespace."""
        times: dict[str, list[int]] = {namespace: [] for namespace in self._nodes}
        part = self._period / len(times)
        due = time.monotonic()
        for _ in range(count):
            # An arm whose numbers never change is taken for one that is disconnected.
            positions = self._positions + JITTER * (self._published % 2)
            for namespace, published in times.items():
                # Do not catch up after a delay: a node takes two states at once for one.
                due = max(due + part, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
                published.append(time.time_ns())
                self._states[namespace].publish(
                    self._writer.write(published[-1], positions, self._velocities)
                )
            self._published += 1
            if time.monotonic() > self._next_check:
                self._next_check = time.monotonic() + CHECK_PERIOD
                self._check_nodes()
        return times

    def close(self) -> None:
        self._executor.shutdown(timeout_sec=1.0)
        self._node.destroy_node()

    @property
    def _is_answering(self) -> bool:
        return self._status[0].state == Status.RUNNING.code

    def _check_nodes(self) -> None:
        self._executor.spin_once(timeout_sec=0.0)
        for namespace, process in self._nodes.items():
            if process.poll() is not None:
                raise ArmError(f'the node in {namespace} has ended, code {process.returncode}')
        # On a busy machine the node may have dropped its goal.
        if not self._is_answering and time.monotonic() > self._next_goal:
            self._next_goal = time.monotonic() + GOAL_PERIOD
            self._goal.header.stamp = self._node.get_clock().now().to_msg()
            self._goals.publish(self._goal)
