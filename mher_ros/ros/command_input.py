"""Commands to a simulated arm: topics to vectors, bad messages refused with a reason."""

from __future__ import annotations

import abc

from geometry_msgs.msg import TwistStamped
from mher_ros.control.robot import Topics
from mher_ros.ros.inbox import Inbox, RELIABLE
from mher_ros.ros.malformed import warn_of_message
from mher_ros.ros.wire import deserialise, MessageError, stamp_of, TwistReader
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.trajectory import Trajectory
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

__all__ = ['CommandInput', 'JointInput', 'TwistInput']

TOPICS = Topics()


class CommandInput(abc.ABC):
    """What other nodes ask of the arm."""

    kind: str
    """What is commanded: twist, positions or effort."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.refused = 0

    @abc.abstractmethod
    def take(self, deadline: float) -> tuple[int, NDArray[np.float64]] | None:
        """
        Wait for the next command, until ``time.monotonic()`` is ``deadline``.

        Returns the stamp [ns] of the state it answers, and the command; None if none came.
        """

    @abc.abstractmethod
    def follow(self, period: float) -> NDArray[np.float64] | None:
        """Return what is asked for the coming ``period`` [s] by what came since the last call."""

    @abc.abstractmethod
    def ignore(self) -> None:
        """Let go by what came since the last call; what is being followed waits."""

    @abc.abstractmethod
    def forget(self) -> None:
        """Give up what is being followed."""

    def _refuse(self, inbox: Inbox, error: MessageError) -> None:
        self.refused += 1
        if not inbox.is_malformed(error):
            topic = inbox.topic
            warn_of_message(self._node, topic, f'refused a message on {topic}: {error}')


class TwistInput(CommandInput):
    """The tool's velocity, as MoveIt Servo takes it."""

    kind = 'twist'

    def __init__(self, node: Node, plant: Plant) -> None:
        super().__init__(node)
        self._inbox = Inbox(node, TwistStamped, 'twist_command')
        self._reader = TwistReader(plant.frame)
        self._axes = len(plant.command_names)

    def take(self, deadline: float) -> tuple[int, NDArray[np.float64]] | None:
        """Return the next usable twist."""
        raw = self._inbox.take(deadline)
        if raw is None:
            return None
        try:
            stamp, velocity = self._reader.read(raw)
            if self._axes < 3 and velocity[self._axes :].any():
                raise MessageError(f'it moves along {self._axes} axes, got {velocity}')
        except MessageError as error:
            self._refuse(self._inbox, error)
            return None
        return stamp, velocity[: self._axes]

    def follow(self, period: float) -> NDArray[np.float64] | None:
        """Return the newest twist."""
        taken = self.take(0.0)
        return None if taken is None else taken[1]

    def ignore(self) -> None:
        """Let the newest twist go by."""
        self._inbox.take(0.0)

    def forget(self) -> None:
        """Do nothing: a twist is no way to be followed."""


class JointInput(CommandInput):
    """
    Joint commands, as the controllers of ros2_control take them.

    ``joint_trajectory`` as joint_trajectory_controller's, ``commands`` as
    forward_command_controller's. ``kind`` says what is commanded: ``positions``, or ``effort``.
    """

    def __init__(
        self,
        node: Node,
        plant: Plant,
        names: tuple[str, ...],
        kind: str,
        topics: Topics = TOPICS,
    ) -> None:
        super().__init__(node)
        self._plant, self._names, self.kind = plant, names, kind
        # Somebody may publish a single one by hand, and nobody repeats it.
        self._trajectories = Inbox(node, JointTrajectory, topics.joint_trajectory, RELIABLE)
        self._vectors = Inbox(node, Float64MultiArray, topics.joint_position, RELIABLE)
        self._trajectory: Trajectory | None = None

    def take(self, deadline: float) -> tuple[int, NDArray[np.float64]] | None:
        """Return the last point of the next trajectory; ``commands`` carry no stamp to answer."""
        raw = self._trajectories.take(deadline)
        if raw is None:
            return None
        try:
            message = deserialise(raw, JointTrajectory)
            _, points = self._read_trajectory(message)
        except MessageError as error:
            self._refuse(self._trajectories, error)
            return None
        return stamp_of(message.header.stamp), points[-1]

    def follow(self, period: float) -> NDArray[np.float64] | None:
        """Return the newest vector, or where the newest trajectory has got to."""
        vector = self._newest_vector()
        if vector is not None:
            self._trajectory = None
            return vector
        raw = self._trajectories.take(0.0)
        if raw is not None:
            try:
                times, points = self._read_trajectory(deserialise(raw, JointTrajectory))
                self._trajectory = Trajectory(self._start(), times, points)
            except MessageError as error:
                self._refuse(self._trajectories, error)
        if self._trajectory is None or self._trajectory.is_over():
            return None
        return self._trajectory.advance(period)

    def ignore(self) -> None:
        """Let the newest vector and trajectory go by."""
        self._vectors.take(0.0)
        self._trajectories.take(0.0)

    def forget(self) -> None:
        """Give up the trajectory."""
        self._trajectory = None

    def _start(self) -> NDArray[np.float64]:
        if self.kind != 'positions':
            return np.zeros(len(self._names))
        positions, _ = self._plant.joint_state()
        return positions[[self._plant.joint_names.index(name) for name in self._names]]

    def _newest_vector(self) -> NDArray[np.float64] | None:
        raw = self._vectors.take(0.0)
        if raw is None:
            return None
        try:
            return self._checked(list(deserialise(raw, Float64MultiArray).data))
        except MessageError as error:
            self._refuse(self._vectors, error)
            return None

    def _read_trajectory(
        self, message: JointTrajectory
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        names = list(message.joint_names)
        if sorted(names) != sorted(self._names):
            raise MessageError(f'joints {", ".join(self._names)} are expected, got {names}')
        if not message.points:
            raise MessageError('at least one point is expected, got none')
        order = [names.index(name) for name in self._names]
        points, times = [], []
        for point in message.points:
            points.append(self._checked(list(getattr(point, self.kind)))[order])
            times.append(point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec)
        if any(later < earlier for earlier, later in zip((0.0, *times), times, strict=False)):
            raise MessageError(f'times from 0 on that never go back are expected, got {times}')
        return np.array(times), np.array(points)

    def _checked(self, values: list[float]) -> NDArray[np.float64]:
        if len(values) != len(self._names) or not np.isfinite(values).all():
            raise MessageError(f'{len(self._names)} finite {self.kind} are expected, got {values}')
        return np.array(values)
