"""
A node that does nothing with a joint state but to answer it: what any node must take.

``python -m mher_ros.bench.echo_node FILE`` runs it; at the end there is a note of each answer in
FILE. The parameter ``output`` says what it answers with, ``twist``, or ``joint_trajectory`` with
one point; ``command_rate`` how often it is asked.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
import signal
import sys
import time
from typing import Any

from geometry_msgs.msg import TwistStamped
from mher_ros.bench.answer_times import AnswerTimes
from mher_ros.control.robot import Topics
from mher_ros.ros.diagnostics import report_diagnostics
from mher_ros.ros.inbox import Inbox, SPEAKING
from mher_ros.ros.process import StopRequest
from mher_ros.ros.spinning import spinning
import rclpy
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import try_shutdown
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

__all__ = ['EchoNode']

PATIENCE = 0.05
JOINTS = 7


class EchoNode(Node):
    """Takes joint states as policy_node does, and publishes its first numbers as a command."""

    def __init__(self) -> None:
        super().__init__('echo_node')
        output = self.declare_parameter('output', 'twist').value
        self._tick = 1.0 / self.declare_parameter('command_rate', 100.0).value
        topics = dataclasses.asdict(Topics())
        self._states = Inbox(self, JointState, topics['joint_states'])
        self._latency = AnswerTimes(self._tick)
        kind = TwistStamped if output == 'twist' else JointTrajectory
        self._commands = self.create_publisher(kind, topics[output], SPEAKING)
        self._answer = self._twist if output == 'twist' else self._trajectory
        report_diagnostics(self, lambda: (True, 'answering', self._latency.figures()))

    def run(self, stop: StopRequest) -> None:
        """Answer until asked to stop."""
        while not stop():
            raw = self._states.take(time.monotonic() + PATIENCE)
            if raw is not None:
                self._commands.publish(self._answer(deserialize_message(raw, JointState)))
                self._latency.note(self._states.received)

    def _twist(self, state: Any) -> TwistStamped:
        message = TwistStamped()
        message.header.stamp = self.get_clock().now().to_msg()
        linear = message.twist.linear
        linear.x, linear.y, linear.z = state.position[:3]
        return message

    def _trajectory(self, state: Any) -> JointTrajectory:
        point = JointTrajectoryPoint(positions=state.position[:JOINTS])
        point.time_from_start.nanosec = int(self._tick * 1e9)
        return JointTrajectory(joint_names=state.name[:JOINTS], points=[point])


if __name__ == '__main__':
    asked = StopRequest()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, asked.ask)
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    node = EchoNode()
    with spinning(node):
        node.run(asked)
    try_shutdown()
    AnswerTimes.write(Path(sys.argv[1]))
