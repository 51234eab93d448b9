"""
An arm that simulates nothing: it answers each twist with the same joint state.

``python -m mher_ros.bench.echo_arm TASK`` runs it. Messages, QoS and the way to wait are those of
sim_node in lockstep; ``RoundTrip`` is the other side. Nobody reads what a message says.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from geometry_msgs.msg import TwistStamped
from mher_ros.errors import ArmError
from mher_ros.ros.inbox import Inbox, SPEAKING
from mher_ros.ros.process import run_process, StopRequest
from mher_ros.ros.spinning import spinning
from mher_ros.ros.wire import JointStateWriter, TwistWriter
from mher_ros.tasks import make
import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

__all__ = ['RoundTrip']

PATIENCE, AGAIN = 0.05, 0.1
"""As the two sides of a lockstep have [s]."""
START = 30.0
"""Time within which the other side must answer [s]."""
COMMANDS, STATES = 'twist_command', 'joint_states'


class RoundTrip:
    """A command out, a state back, and nothing else; called as an env is."""

    def __init__(self, node: Node, frame: str, namespace: str) -> None:
        self._states = Inbox(node, JointState, f'{namespace}/{STATES}')
        self._commands = node.create_publisher(TwistStamped, f'{namespace}/{COMMANDS}', SPEAKING)
        self._command = TwistWriter(frame).write(0, np.ones(3))

    def reset(self, seed: int) -> None:
        """Do nothing."""

    def step(self, action: Any) -> None:
        """Do it once, whatever the action; a message that got lost is sent again."""
        deadline = time.monotonic() + START
        self._commands.publish(self._command)
        while self._states.take(time.monotonic() + AGAIN) is None:
            if time.monotonic() > deadline:
                raise ArmError(f'nothing came on {self._states.topic} within {START:g} s')
            self._commands.publish(self._command)


class EchoArm(Node):
    """Answers."""

    def __init__(self, task: str) -> None:
        super().__init__('echo_arm')
        env = make(task)
        count = len(env.joint_names)
        writer = JointStateWriter(env.joint_names, env.interface.frame)
        self._state = writer.write(0, np.ones(count), np.ones(count))
        self._states = self.create_publisher(JointState, STATES, SPEAKING)
        self._commands = Inbox(self, TwistStamped, COMMANDS)

    def run(self, stop: StopRequest) -> None:
        """Answer until asked to stop."""
        while not stop():
            if self._commands.take(time.monotonic() + PATIENCE) is not None:
                self._states.publish(self._state)


def run(stop: StopRequest) -> None:
    """Run the arm until asked to stop."""
    node = EchoArm(sys.argv[1])
    with spinning(node, stop):
        node.run(stop)


if __name__ == '__main__':
    sys.exit(run_process('echo_arm', sys.argv[1:], run))
