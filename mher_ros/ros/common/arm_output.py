"""The messages of an arm's commands, as controllers take them."""

from array import array
from collections.abc import Callable
import importlib
from typing import Any

from builtin_interfaces.msg import Time
from mher_ros.control.motion import Command
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.ros.common.polled_topic import RELIABLE_QUEUE
from mher_ros.ros.common.raw_messages import ToolWriter, TrajectoryWriter
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.serialization import serialize_message


def _message_type(name: str) -> Any:
    """Return the class of a message type, such as ``std_msgs/msg/String``."""
    package, folder, kind = name.split('/')
    return getattr(importlib.import_module(f'{package}.{folder}'), kind)


MESSAGES = {
    name: _message_type(output.message) for name, output in OUTPUTS.items() if output.message
}
"""Type of the message by the name of the output; with ``none`` nothing is sent."""
DELIVERY = Duration(seconds=0.5)  # longest time for the last command to be received


class ArmOutput:
    """
    Publishes the commands of one arm.

    - ``twist``: velocity of the tool in the base frame, as MoveIt Servo takes it;
    - ``pose``: pose of the tool in the base frame, as Cartesian controllers take it;
    - ``joint_trajectory``: one point, as joint_trajectory_controller takes it. It starts at once
      (a stamp of 0), so that clocks may differ, and lasts one command period;
    - ``joint_position`` and ``joint_velocity``: as forward_command_controller takes them.
    """

    def __init__(
        self,
        node: Node,
        stamp: Callable[[], Time],
        kind: str,
        topic: str,
        frame: str,
        joints: tuple[str, ...],
        period: float,
    ) -> None:
        """
        Command ``joints``, or the tool in ``frame``, every ``period`` [s].

        ``stamp`` returns the time for the header of a message.
        """
        self._node, self._kind, self._stamp = node, kind, stamp
        self._publisher = node.create_publisher(MESSAGES[kind], topic, RELIABLE_QUEUE)
        self._message = MESSAGES[kind]()
        self._trajectory = TrajectoryWriter(joints, period)
        if not OUTPUTS[kind].of_joints:
            self._message.header.frame_id = frame
            self._tool = ToolWriter(self._message)

    @property
    def topic(self) -> str:
        """Full name of the topic, remappings applied."""
        return str(self._publisher.topic_name)

    @property
    def subscribers(self) -> int:
        return int(self._publisher.get_subscription_count())

    def write(self, command: Command) -> bytes:
        """Return the message of a command, serialised: sending it then takes little time."""
        message, kind = self._message, self._kind
        if kind == 'twist':
            return self._tool.write(self._stamp(), *command.tool_velocity.tolist(), 0.0, 0.0, 0.0)
        if kind == 'pose':
            w, *xyz = command.orientation.tolist()
            return self._tool.write(self._stamp(), *command.tool_position.tolist(), *xyz, w)
        of_velocity = OUTPUTS[kind].is_velocity
        values = command.joint_velocities if of_velocity else command.joint_positions
        assert values is not None
        if kind == 'joint_trajectory':
            return self._trajectory.write(0, values)
        message.data = array('d', values)
        return serialize_message(message)

    def send(self, message: bytes) -> None:
        self._publisher.publish(message)

    def close(self) -> None:
        """Destroy the publisher, once the last command, which stops the arm, has been received."""
        if self._node.context.ok():
            self._publisher.wait_for_all_acked(DELIVERY)
        self._node.destroy_publisher(self._publisher)
