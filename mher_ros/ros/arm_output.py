"""What a policy asks of an arm, as the messages that controllers take."""

from __future__ import annotations

import abc
from array import array
from typing import ClassVar

from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.control.reach import Command
from mher_ros.ros.inbox import SPEAKING
from mher_ros.ros.wire import TrajectoryWriter, TwistWriter
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

__all__ = ['ARM_OUTPUTS', 'ArmOutput']


class ArmOutput(abc.ABC):
    """One way to command an arm."""

    message: ClassVar[type]
    """What is published."""

    def __init__(
        self, node: Node, topic: str, frame: str, joints: tuple[str, ...], tick: float
    ) -> None:
        """Command ``joints``, or the tool in ``frame``, every ``tick`` [s]."""
        self._node, self._clock = node, node.get_clock()
        self._publisher = node.create_publisher(self.message, topic, SPEAKING)

    @property
    def topic(self) -> str:
        """Full name of the topic, remappings applied."""
        return str(self._publisher.topic_name)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return int(self._publisher.get_subscription_count())

    def close(self) -> None:
        """Command no more."""
        self._node.destroy_publisher(self._publisher)

    @abc.abstractmethod
    def send(self, command: Command) -> None:
        """Publish a command."""


class TwistCommands(ArmOutput):
    """The tool's velocity in the base frame, as MoveIt Servo takes it."""

    message = TwistStamped

    def __init__(
        self, node: Node, topic: str, frame: str, joints: tuple[str, ...], tick: float
    ) -> None:
        super().__init__(node, topic, frame, joints, tick)
        self._writer = TwistWriter(frame)

    def send(self, command: Command) -> None:
        """Publish the velocity."""
        stamp = self._clock.now().nanoseconds
        self._publisher.publish(self._writer.write(stamp, command.tool_velocity))


class PoseCommands(ArmOutput):
    """The tool's pose in the base frame, as Cartesian controllers take it."""

    message = PoseStamped

    def __init__(
        self, node: Node, topic: str, frame: str, joints: tuple[str, ...], tick: float
    ) -> None:
        super().__init__(node, topic, frame, joints, tick)
        self._message = PoseStamped()
        self._message.header.frame_id = frame

    def send(self, command: Command) -> None:
        """Publish where the tool is to be, and how it is to be turned."""
        self._message.header.stamp = self._clock.now().to_msg()
        place, turn = self._message.pose.position, self._message.pose.orientation
        place.x, place.y, place.z = command.tool_position.tolist()
        turn.w, turn.x, turn.y, turn.z = command.orientation.tolist()
        self._publisher.publish(self._message)


class TrajectoryCommands(ArmOutput):
    """
    Trajectories of one point, as joint_trajectory_controller takes them.

    They begin at once (a stamp of 0), so that clocks that differ do no harm, and last one command
    period.
    """

    message = JointTrajectory

    def __init__(
        self, node: Node, topic: str, frame: str, joints: tuple[str, ...], tick: float
    ) -> None:
        super().__init__(node, topic, frame, joints, tick)
        self._writer = TrajectoryWriter(joints, tick)

    def send(self, command: Command) -> None:
        """Publish where the joints are to be one command period from now."""
        assert command.joint_positions is not None
        self._publisher.publish(self._writer.write(0, command.joint_positions))


class PositionCommands(ArmOutput):
    """Positions of the joints, as forward_command_controller takes them."""

    message = Float64MultiArray

    def send(self, command: Command) -> None:
        """Publish where the joints are to be."""
        assert command.joint_positions is not None
        self._publisher.publish(Float64MultiArray(data=array('d', command.joint_positions)))


class VelocityCommands(ArmOutput):
    """Velocities of the joints, as forward_command_controller takes them."""

    message = Float64MultiArray

    def send(self, command: Command) -> None:
        """Publish how the joints are to move."""
        assert command.joint_velocities is not None
        self._publisher.publish(Float64MultiArray(data=array('d', command.joint_velocities)))


ARM_OUTPUTS: dict[str, type[ArmOutput]] = {
    'twist': TwistCommands,
    'pose': PoseCommands,
    'joint_trajectory': TrajectoryCommands,
    'joint_position': PositionCommands,
    'joint_velocity': VelocityCommands,
}
"""By name; with ``none`` nothing is sent."""
