"""Commands to a simulated robot, under the topics of the real one's controllers."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.control.robot import Topics
from mher_ros.ros.command_input import JointInput
from mher_ros.ros.inbox import Inbox, RELIABLE
from mher_ros.ros.wire import deserialise, MessageError, TwistReader
from mher_ros.simulation.controlled_arm import ControlledArm
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray

__all__ = ['RobotInput']

Read = Callable[[bytes], NDArray[np.float64]]
UNIT = 1e-3
"""By which the length of a quaternion may differ from 1."""


class RobotInput(JointInput):
    """
    All outputs of policy_node, each under its topic; the newest command counts.

    Where positions and velocities of joints share a topic, ``output`` says which come: they are
    positions unless it is ``joint_velocity``.
    """

    def __init__(self, node: Node, arm: ControlledArm, topics: Topics, output: str) -> None:
        super().__init__(node, arm, arm.command_names, 'positions', topics)
        self._arm, self._twist = arm, TwistReader(arm.frame)
        inputs: list[tuple[str, type, str, Read]] = [
            ('twist', TwistStamped, topics.twist, lambda raw: self._twist.read(raw)[1]),
            ('pose', PoseStamped, topics.pose, self._read_pose),
        ]
        self._vector = 'joint_position'
        if topics.joint_velocity != topics.joint_position:
            inputs.append(
                ('joint_velocity', Float64MultiArray, topics.joint_velocity, self._read_vector)
            )
        elif output == 'joint_velocity':
            self._vector = 'joint_velocity'
        self._others = [
            (controller, Inbox(node, kind, topic, RELIABLE), read)
            for controller, kind, topic, read in inputs
        ]

    def follow(self, period: float) -> NDArray[np.float64] | None:
        """Return the newest command, and have the arm carried on by the controller for it."""
        for controller, inbox, read in self._others:
            raw = inbox.take(0.0)
            if raw is None:
                continue
            try:
                asked = read(raw)
            except MessageError as error:
                self._refuse(inbox, error)
                continue
            self.forget()
            self._arm.controller = controller
            return asked
        vector_or_point = super().follow(period)
        if vector_or_point is not None:
            is_point = self._trajectory is not None
            self._arm.controller = 'joint_position' if is_point else self._vector
        return vector_or_point

    def ignore(self) -> None:
        """Let all that is new go by."""
        super().ignore()
        for _, inbox, _ in self._others:
            inbox.take(0.0)

    def _read_vector(self, raw: bytes) -> NDArray[np.float64]:
        return self._checked(list(deserialise(raw, Float64MultiArray).data))

    def _read_pose(self, raw: bytes) -> NDArray[np.float64]:
        message = deserialise(raw, PoseStamped)
        place, turn = message.pose.position, message.pose.orientation
        frame = message.header.frame_id
        if frame not in ('', self._arm.frame):
            raise MessageError(f'a pose in frame {self._arm.frame!r} is expected, got {frame!r}')
        pose = np.array([place.x, place.y, place.z, turn.w, turn.x, turn.y, turn.z])
        length = float(np.linalg.norm(pose[3:]))
        if not np.isfinite(pose).all() or abs(length - 1.0) > UNIT:
            raise MessageError(
                f'finite numbers and a quaternion of length 1 are expected, got {pose.tolist()}'
            )
        pose[3:] /= length
        return pose
