"""Reads the commands to a simulated arm; invalid messages are refused with a reason."""

from collections.abc import Callable
from typing import Any, TypeVar

from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.interface import Vector
from mher_ros.robots.robot import Topics
from mher_ros.ros.common.arm_output import MESSAGES
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.polled_topic import PolledTopic, RELIABLE, warn_of_message
from mher_ros.ros.common.raw_messages import ActionReader, deserialise, MessageError, stamp_of
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.drives import Trajectory
from mher_ros.simulation.plant import Plant
import numpy as np
from numpy.typing import ArrayLike
from rclpy.node import Node
from sensor_msgs.msg import Joy
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

Read = TypeVar('Read')
UNIT = 1e-3  # tolerance of a quaternion's length of 1
LARGEST = 1e6  # number in a command: the squares and differences of larger ones may overflow


class _Commands:
    """Reads messages of topics; invalid ones are counted in ``refused``."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.refused = 0

    def _next(
        self, polled: PolledTopic, read: Callable[[bytes], Read], deadline: float
    ) -> Read | None:
        """Return what ``read`` makes of the next message; None if there is no valid one."""
        raw = polled.take(deadline)
        if raw is None:
            return None
        try:
            return read(raw)
        except MessageError as error:
            self.refused += 1
            if not polled.is_malformed(error):
                text = f'refused a message on {polled.topic}: {error}'
                warn_of_message(self._node, polled.topic, text)
            return None


class ActionInput(_Commands):
    """Actions of a task, whose simulator steps as it does in one process."""

    kind = 'action'

    def __init__(self, node: Node, plant: Plant) -> None:
        super().__init__(node)
        self._actions = PolledTopic(node, Joy, 'action')
        self._reader = ActionReader(len(plant.command_names))

    def take(self, deadline: float) -> tuple[int, Vector] | None:
        """Return the stamp [ns] that the next action answers and the action (k,), or None."""
        return self._next(self._actions, self._reader.read, deadline)

    def follow(self, period: float) -> Vector | None:
        """Return the newest action, for the next ``period`` [s]."""
        taken = self.take(0.0)
        return None if taken is None else taken[1]

    def ignore(self) -> None:
        self._actions.take(0.0)

    def forget(self) -> None:
        """Do nothing: an action lasts for one period."""


class RobotInput(_Commands):
    """
    Commands of all outputs of policy_node, each on its topic; the newest counts.

    If positions and velocities of joints share a topic, they are velocities if ``output`` is
    ``joint_velocity``, otherwise positions. In lockstep, commands are trajectories with the stamp
    of the state that they answer.
    """

    kind = 'positions'

    def __init__(self, node: Node, arm: ControlledArm, topics: Topics, output: str) -> None:
        super().__init__(node)
        self._arm, self._names = arm, arm.command_names
        self._trajectory: Trajectory | None = None
        readers: dict[str, Callable[[bytes], Vector]] = {
            'twist': lambda raw: read_twist(raw, arm.frame),
            'pose': self._read_pose,
            'joint_position': self._read_vector,
            'joint_velocity': self._read_vector,
        }
        if topics.commands['joint_velocity'] == topics.commands['joint_position']:
            ignored = 'joint_position' if output == 'joint_velocity' else 'joint_velocity'
            del readers[ignored]
        # Reliable: a single message that is published by hand is not repeated.
        self._inputs = [
            (output, PolledTopic(node, MESSAGES[output], topics.commands[output], RELIABLE), read)
            for output, read in readers.items()
        ]
        self._trajectories = PolledTopic(
            node, JointTrajectory, topics.commands['joint_trajectory'], RELIABLE
        )

    def take(self, deadline: float) -> tuple[int, Vector] | None:
        """Wait for a trajectory; return the stamp [ns] that it answers and its last point (k,)."""
        taken = self._next(self._trajectories, self._read_trajectory, deadline)
        if taken is None:
            return None
        self._arm.controller = 'joint_position'
        stamp, _, points = taken
        return stamp, points[-1]

    def follow(self, period: float) -> Vector | None:
        """Return the newest command for the next ``period`` [s], if any."""
        for controller, polled, read in self._inputs:
            asked = self._next(polled, read, 0.0)
            if asked is not None:
                self.forget()
                self._arm.controller = controller
                return asked
        taken = self._next(self._trajectories, self._read_trajectory, 0.0)
        if taken is not None:
            positions, _ = self._arm.joint_state()
            start = positions[[self._arm.joint_names.index(name) for name in self._names]]
            self._trajectory = Trajectory(start, *taken[1:])
        if self._trajectory is None or self._trajectory.is_over():
            return None
        self._arm.controller = 'joint_position'
        return self._trajectory.advance(period)

    def ignore(self) -> None:
        """Discard new commands; a trajectory that is being followed waits."""
        for polled in (self._trajectories, *(polled for _, polled, _ in self._inputs)):
            polled.take(0.0)

    def forget(self) -> None:
        self._trajectory = None

    def _read_trajectory(self, raw: bytes) -> tuple[int, Vector, Vector]:
        """Return stamp [ns], times (p,) [s] and positions (p, n) of the points."""
        message = deserialise(raw, JointTrajectory)
        names = list(message.joint_names)
        if sorted(names) != sorted(self._names):
            raise MessageError(f'joints {", ".join(self._names)} are expected, got {names}')
        if not message.points:
            raise MessageError('at least one point is expected, got none')
        order = [names.index(name) for name in self._names]
        points, times = [], []
        for point in message.points:
            points.append(self._checked(list(point.positions))[order])
            times.append(point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec)
        if any(later < earlier for earlier, later in zip((0.0, *times), times, strict=False)):
            raise MessageError(f'times from 0 on in ascending order are expected, got {times}')
        return stamp_of(message.header.stamp), np.array(times), np.array(points)

    def _checked(self, values: list[float]) -> Vector:
        if len(values) != len(self._names) or not _is_usable(values):
            raise MessageError(
                f'{len(self._names)} finite positions up to {LARGEST:g} are expected, got {values}'
            )
        return np.array(values)

    def _read_vector(self, raw: bytes) -> Vector:
        return self._checked(list(deserialise(raw, Float64MultiArray).data))

    def _read_pose(self, raw: bytes) -> Vector:
        message = deserialise(raw, PoseStamped)
        _check_frame(message, self._arm.frame)
        pose = np.array(numbers_of(message.pose.position, message.pose.orientation))
        length = float(np.linalg.norm(pose[3:]))
        if not _is_usable(pose) or abs(length - 1.0) > UNIT:
            raise MessageError(
                f'finite numbers up to {LARGEST:g} and a quaternion of length 1 are expected, '
                f'got {pose.tolist()}'
            )
        pose[3:] /= length
        return pose


def read_twist(raw: bytes, frame: str) -> Vector:
    """Return the linear velocity (3,) [m/s] of a ``TwistStamped`` in ``frame``."""
    message = deserialise(raw, TwistStamped)
    _check_frame(message, frame)
    linear, angular = numbers_of(message.twist.linear), numbers_of(message.twist.angular)
    if not _is_usable(linear + angular):
        raise MessageError(
            f'a twist of finite numbers up to {LARGEST:g} is expected, got {linear + angular}'
        )
    if any(angular):
        raise MessageError(f'the tool keeps its orientation: angular velocity 0, got {angular}')
    return np.array(linear)


def _is_usable(numbers: ArrayLike) -> bool:
    """Return whether all are finite, and none is too large to compute with."""
    return bool((np.abs(numbers) <= LARGEST).all())


def _check_frame(message: Any, frame: str) -> None:
    if message.header.frame_id not in ('', frame):
        kind = type(message).__name__
        raise MessageError(
            f'a {kind} in frame {frame!r} is expected, got {message.header.frame_id!r}'
        )
