"""Commands to an arm: vectors to topics."""

from __future__ import annotations

import abc
from typing import ClassVar

from geometry_msgs.msg import TwistStamped
from mher_ros.ros.inbox import SPEAKING
from mher_ros.ros.wire import SECOND, TwistWriter
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

__all__ = ['CommandOutput', 'EffortOutput', 'TwistOutput']


class CommandOutput(abc.ABC):
    """One way to ask an arm for something."""

    kind: ClassVar[str]
    """What sim_node calls commands of this kind."""

    @abc.abstractmethod
    def send(self, stamp: int, command: NDArray[np.float64]) -> None:
        """Publish a command (c,) that answers the state stamped ``stamp`` [ns]."""


class TwistOutput(CommandOutput):
    """The tool's velocity in ``frame``, as MoveIt Servo takes it."""

    kind = 'twist'

    def __init__(self, node: Node, frame: str) -> None:
        self._publisher = node.create_publisher(TwistStamped, 'twist_command', SPEAKING)
        self._writer = TwistWriter(frame)

    def send(self, stamp: int, command: NDArray[np.float64]) -> None:
        """Publish the velocity of up to three axes [m/s]."""
        self._publisher.publish(self._writer.write(stamp, command))


class EffortOutput(CommandOutput):
    """A torque for each joint, as a trajectory of one point."""

    kind = 'effort'

    def __init__(self, node: Node, joint_names: tuple[str, ...]) -> None:
        self._publisher = node.create_publisher(JointTrajectory, 'joint_trajectory', SPEAKING)
        self._message = JointTrajectory(
            joint_names=list(joint_names), points=[JointTrajectoryPoint()]
        )

    def send(self, stamp: int, command: NDArray[np.float64]) -> None:
        """Publish the torques [N m]."""
        header = self._message.header
        header.stamp.sec, header.stamp.nanosec = divmod(stamp, SECOND)
        self._message.points[0].effort = command.tolist()
        self._publisher.publish(self._message)
