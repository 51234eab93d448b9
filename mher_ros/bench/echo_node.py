"""
A node that does nothing with a joint state but to answer it: what any node must take.

``python -m mher_ros.bench.echo_node FILE`` runs it; at the end there is a note of each answer in
FILE. Parameters: ``output``, what it answers with, ``twist``, or ``joint_trajectory`` with one
point; ``robot``, whose topics, frame and joints are meant; ``command_rate``, how often it is
asked; ``plain``, whether it reads and writes messages as rclpy does.
"""

from __future__ import annotations

from pathlib import Path
import sys
import time
from typing import Any

from geometry_msgs.msg import TwistStamped
from mher_ros.bench.answer_times import AnswerTimes
from mher_ros.control.robot import load_robot
from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.inbox import Inbox, SPEAKING
from mher_ros.ros.process import run_process, StopRequest
from mher_ros.ros.spinning import spinning
from mher_ros.ros.wire import SECOND, STAMP, STAMP_AT, TrajectoryWriter, TwistWriter
import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

__all__ = ['EchoNode']

PATIENCE = 0.05


class EchoNode(Node):
    """
    Waits for joint states as policy_node does, and answers each.

    It reads nothing and sends a message made before, of which a twist has a stamp of its own, as
    policy_node's have; or, if plain, it makes a Python message of the state, and another of its
    first numbers.
    """

    def __init__(self) -> None:
        super().__init__('echo_node')
        output = self.declare_parameter('output', 'twist').value
        plain = self.declare_parameter('plain', False).value
        self._tick = 1.0 / self.declare_parameter('command_rate', 100.0).value
        robot = load_robot(self.declare_parameter('robot', 'fetch').value)
        self._count = len(robot.joints)
        self._states = Inbox(self, JointState, robot.topics.joint_states)
        self.latency = AnswerTimes(self._tick)
        kind = TwistStamped if output == 'twist' else JointTrajectory
        topic = getattr(robot.topics, output)
        self._commands = self.create_publisher(kind, topic, SPEAKING)
        if output == 'twist':
            self._ready = bytearray(TwistWriter(robot.base_frame).write(0, np.ones(3)))
            self._answer = self._plain_twist if plain else self._twist
        else:
            writer = TrajectoryWriter(robot.joints, self._tick)
            command = writer.write(0, np.ones(self._count))
            self._answer = self._plain_trajectory if plain else lambda _: command
        report_diagnostics(self, lambda: (True, 'answering', self.latency.figures()))

    def run(self, stop: StopRequest) -> None:
        """Answer until asked to stop."""
        while not stop():
            raw = self._states.take(time.monotonic() + PATIENCE)
            if raw is not None:
                self._commands.publish(self._answer(raw))
                self.latency.note(self._states.received)

    def _twist(self, _: bytes) -> bytes:
        STAMP.pack_into(self._ready, STAMP_AT, *divmod(time.time_ns(), SECOND))
        return bytes(self._ready)

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
    """Run the node until asked to stop, and write the notes."""
    node = EchoNode()
    with spinning(node, stop):
        node.run(stop)
    node.latency.write(Path(sys.argv[1]))


if __name__ == '__main__':
    sys.exit(run_process('echo_node', sys.argv[1:], run))
