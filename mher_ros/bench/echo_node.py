"""The baseline of policy_node's latency: a node that only answers each joint state."""

# ``python -m mher_ros.bench.echo_node FILE`` runs it, and writes its response times to FILE at the
# end. Parameters: ``output``, which command it publishes, ``twist`` or ``joint_trajectory`` with
# one point; ``robot``, whose topics, frame and joints it uses; ``command_rate`` [Hz]; ``plain``,
# whether it converts messages with rclpy.

from pathlib import Path
import sys
import time
from typing import Any

from geometry_msgs.msg import TwistStamped
from mher_ros.bench.response_times import ResponseTimes
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.diagnostics import report_diagnostics
from mher_ros.ros.common.polled_topic import PolledTopic, RELIABLE_QUEUE
from mher_ros.ros.common.process import run_process, StopRequest
from mher_ros.ros.common.raw_messages import SECOND, TrajectoryWriter
from mher_ros.ros.common.spinning import spinning
from mher_ros.ros.common.status import NodeStatus
import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

PATIENCE = 0.05  # longest time between two checks whether to stop [s]


class EchoNode(Node):
    """Waits for joint states as policy_node does, and answers each."""

    # If plain, it deserialises the joint state, and fills a message with its first numbers.
    # Otherwise it does not read the joint state, and publishes constant numbers with a new stamp.
    def __init__(self) -> None:
        super().__init__('echo_node')
        output = self.declare_parameter('output', 'twist').value
        plain = self.declare_parameter('plain', False).value
        self._tick = 1.0 / self.declare_parameter('command_rate', 100.0).value
        robot = load_robot(self.declare_parameter('robot', 'fetch').value)
        self._count = len(robot.joints)
        self._states = PolledTopic(self, JointState, robot.topics.joint_states)
        self.response_times = ResponseTimes(self._tick)
        topic = robot.topics.commands[output]
        if output == 'twist':
            self._commands = self.create_publisher(TwistStamped, topic, RELIABLE_QUEUE)
            self._twist = TwistStamped()
            self._twist.header.frame_id = robot.base_frame
            self._answer = self._plain_twist if plain else self._constant_twist
        else:
            self._commands = self.create_publisher(JointTrajectory, topic, RELIABLE_QUEUE)
            command = TrajectoryWriter(robot.joints, self._tick).write(0, np.ones(self._count))
            self._answer = self._plain_trajectory if plain else lambda _: command
        status = NodeStatus('answering', 'answering')
        report_diagnostics(self, lambda: (status, self.response_times.figures()))

    def run(self, stop: StopRequest) -> None:
        while not stop():
            raw = self._states.take(time.monotonic() + PATIENCE)
            if raw is not None:
                self._commands.publish(self._answer(raw))
                self.response_times.note(self._states.received)

    def _constant_twist(self, _: bytes) -> bytes:
        self._twist.header.stamp = self.get_clock().now().to_msg()
        return serialize_message(self._twist)

    def _plain_twist(self, raw: bytes) -> TwistStamped:
        state: Any = deserialize_message(raw, JointState)
        message = TwistStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        linear = message.twist.linear
        linear.x, linear.y, linear.z = state.position[:3]
        return message

    def _plain_trajectory(self, raw: bytes) -> JointTrajectory:
        state: Any = deserialize_message(raw, JointState)
        point = JointTrajectoryPoint(positions=state.position[: self._count])
        point.time_from_start.nanosec = int(self._tick * SECOND)
        return JointTrajectory(joint_names=state.name[: self._count], points=[point])


def run(stop: StopRequest) -> None:
    node = EchoNode()
    with spinning(node, stop):
        node.run(stop)
    node.response_times.write(Path(sys.argv[1]))


if __name__ == '__main__':
    sys.exit(run_process('echo_node', sys.argv[1:], run))
