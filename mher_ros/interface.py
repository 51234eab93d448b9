"""The interface of a task: observation, goal and action of its policies."""

from collections.abc import Sequence
import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

ACTION_MEANINGS = {
    'displacement': 'the position changes by scale * a',
    'tool_displacement': 'the target of the tool is its current position plus scale * a',
    'target_displacement': 'the target of the tool moves by scale * a, inside the goal box',
    'setpoint_displacement': 'the set-point of the tool moves by scale * a, as far as the arm may',
    'joint_displacement': 'each joint moves by scale * a',
    'joint_torque': 'each joint gets the torque scale * a',
    'env_action': 'an action of a Gymnasium env, scaled to [-1, 1]; not a command for an arm',
}
ORIENTATION = tuple(f'tool_{column}_axis_{axis}' for column in 'xy' for axis in 'xyz')
"""Last entries of goals with an orientation: x and y axis of the tool, of unit length."""
SOURCES = ('measured', 'setpoint', 'tracked', 'action')
"""
Source of an observed value on an arm: its joint sensors (the tool by the kinematics), the last
command, a measured pose of the tool, without kinematics, or an earlier action of the policy.
"""
TINY = 1e-12  # an axis of this length or less has no direction
MOST_PREVIOUS = 10  # earlier actions that are observed


@dataclasses.dataclass(frozen=True)
class Field:
    """One entry of an observation, goal or action vector."""

    name: str
    """Unique within its vector, for example ``tool_position_x``."""
    unit: str
    """SI unit, or a product such as ``m/s * 0.04 s``; ``1``: none."""
    nominal: float = 0.0
    """Value for an arm without this quantity, such as a fixed finger."""
    scale: float = 1.0
    """Actions: command, in ``unit``, for an entry of 1; 0: not used."""
    source: str = 'measured'
    """Observations: one of ``SOURCES``."""


def previous_fields(action: Sequence[Field], count: int) -> tuple[Field, ...]:
    """Return the fields of the last ``count`` actions in an observation, the newest first."""
    return tuple(
        Field(f'previous_{age}_{field.name}', '1', source='action')
        for age in range(1, count + 1)
        for field in action
    )


@dataclasses.dataclass(frozen=True)
class TrainedArm:
    """The arm that a policy was trained on, see ``TaskInterface.is_for_one_arm``."""

    robot: str
    """Name of the robot file."""
    joints: tuple[str, ...]
    """The joints that are commanded."""
    tool_samples: tuple[tuple[float, ...], ...]
    """Positions of the tool (3,) [m] in some fixed postures: they show its kinematics."""
    scene: str
    """Digest of the obstacles of the robot file; empty: there were none."""


@dataclasses.dataclass(frozen=True)
class TaskInterface:
    r"""
    Everything that training and deployment need to know about a task.

    An observation :math:`s` is a vector of ``observation`` fields, a goal :math:`g` of ``goal``
    fields, an action :math:`a \in [-1, 1]^k` of ``action`` fields.
    """

    task: str
    """Name for ``mher_ros.tasks.make``."""
    observation: tuple[Field, ...]
    goal: tuple[Field, ...]
    action: tuple[Field, ...]
    action_meaning: str
    """One of ``ACTION_MEANINGS``."""
    frame: str
    """Frame of positions, goals and displacements."""
    control_period: float
    """Time between two actions [s]."""
    episode_steps: int
    """Steps after which success is evaluated."""
    goal_low: tuple[float, ...]
    """Box that contains all goals of the task."""
    goal_high: tuple[float, ...]
    success_threshold: float
    """Largest successful error of the position, in the goal's unit."""
    achieved_index: tuple[int, ...]
    """Achieved goal in the observation: phi(s) = s[index]."""
    goal_index: tuple[int, ...] = ()
    """Entries of the observation that repeat the desired goal."""
    orientation_threshold: float = 0.0
    """Largest successful error of the orientation [rad]; 0: goals have no ``ORIENTATION``."""
    arm: TrainedArm | None = None
    """The arm of training; None: it is the simulator of a task."""

    @property
    def moves_joints(self) -> bool:
        """Whether actions move joints, not the tool."""
        return self.action_meaning == 'joint_displacement'

    @property
    def is_for_one_arm(self) -> bool:
        """Whether policies fit only ``arm``: they move its joints, or go around its obstacles."""
        return self.moves_joints or (self.arm is not None and bool(self.arm.scene))

    @property
    def previous_actions(self) -> int:
        """Number of earlier actions that are observed."""
        count = sum(field.source == 'action' for field in self.observation)
        return count // max(1, len(self.action))

    @property
    def is_tracked(self) -> bool:
        """Whether what is achieved comes from a measured pose of the tool."""
        return any(self.observation[index].source == 'tracked' for index in self.achieved_index)

    def achieved_goal(self, observation: Any) -> Any:
        r"""Return :math:`\phi(s)` of arrays or tensors of shape ``(..., n)`` as ``(..., m)``."""
        first, count = self.achieved_index[0], len(self.achieved_index)
        return observation[..., first : first + count]

    def with_goal(self, observation: Any, goal: Any) -> Any:
        """Return ``observation`` with ``goal`` in its ``goal_index`` entries (a copy)."""
        if not self.goal_index:
            return observation
        copy = observation.clone() if hasattr(observation, 'clone') else observation.copy()
        first, count = self.goal_index[0], len(self.goal_index)
        copy[..., first : first + count] = goal
        return copy

    @property
    def position_size(self) -> int:
        """Number of entries of a goal that are its position, the first ones."""
        return len(self.goal) - (len(ORIENTATION) if self.orientation_threshold else 0)

    @property
    def position_box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Corners of the box that contains the positions of all goals."""
        return self.goal_low[: self.position_size], self.goal_high[: self.position_size]

    def position_error(self, achieved: ArrayLike, desired: ArrayLike) -> NDArray[np.floating]:
        """Return the distance of the positions of goals ``(..., m)`` as ``(...)``."""
        count = self.position_size
        difference = np.asarray(achieved)[..., :count] - np.asarray(desired)[..., :count]
        return np.linalg.norm(difference, axis=-1)

    def angle_error(self, achieved: ArrayLike, desired: ArrayLike) -> NDArray[np.floating]:
        """Return the angle between the orientations of goals ``(..., m)`` as ``(...)`` [rad]."""
        count = self.position_size
        first, second = (
            _rotation(np.asarray(goals, np.float64)[..., count:]) for goals in (achieved, desired)
        )
        difference = np.linalg.norm(first - second, axis=(-2, -1))
        # Its Frobenius norm is sqrt(8) sin(angle / 2); this is exact for small angles, too.
        return 2.0 * np.arcsin(np.minimum(difference / np.sqrt(8.0), 1.0))

    def distance(self, achieved: ArrayLike, desired: ArrayLike) -> NDArray[np.floating]:
        """
        Return the distance between goals of shape ``(..., m)`` as ``(...)``, in the goal's unit.

        It is the Euclidean distance of the positions. With an orientation, an angle of
        ``orientation_threshold`` counts as the distance ``success_threshold``; the larger of the
        two is returned.
        """
        error = self.position_error(achieved, desired)
        if not self.orientation_threshold:
            return error
        length = self.success_threshold / self.orientation_threshold
        return np.maximum(error, length * self.angle_error(achieved, desired))

    def is_success(
        self, achieved: ArrayLike, desired: ArrayLike, threshold_factor: float = 1.0
    ) -> NDArray[np.bool_]:
        """
        Return whether goals of shape ``(..., m)`` are within the threshold, as ``(...)``.

        ``threshold_factor``: factor of the threshold, larger than 1 early in training.
        """
        return self.distance(achieved, desired) <= threshold_factor * self.success_threshold

    def reward(
        self, achieved: ArrayLike, desired: ArrayLike, threshold_factor: float = 1.0
    ) -> NDArray[np.float32]:
        """Return 0 for success and -1 otherwise, vectorised (Eq. 1)."""
        success = self.is_success(achieved, desired, threshold_factor)
        return np.where(success, np.float32(0.0), np.float32(-1.0))

    def __post_init__(self) -> None:
        """Check ``action_meaning``, and that each index is a contiguous range of entries."""
        if self.action_meaning not in ACTION_MEANINGS:
            raise ValueError(
                f'{self.task}: expected an action_meaning of {", ".join(ACTION_MEANINGS)}; '
                f'got {self.action_meaning!r}'
            )
        n, m = len(self.observation), len(self.goal)
        ranges = [tuple(range(first, first + m)) for first in range(n - m + 1)]
        for index, allowed in ((self.achieved_index, ranges), (self.goal_index, [(), *ranges])):
            if index not in allowed:
                raise ValueError(f'{self.task}: {index} is not a range of {m} of {n} entries')
        axes = tuple(field.name for field in self.goal[self.position_size :])
        if axes != (ORIENTATION if self.orientation_threshold else ()):
            raise ValueError(f'{self.task}: goals must end with {", ".join(ORIENTATION)}')


def _rotation(axes: Vector) -> Vector:
    """
    Return rotation matrices (..., 3, 3), with the axes as rows, of x and y axes (..., 6).

    Axes that are not quite orthonormal, as those of a model's prediction, are corrected.
    """
    x, y = axes[..., :3], axes[..., 3:]
    x = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), TINY)
    y = y - (x * y).sum(axis=-1, keepdims=True) * x
    y = y / np.maximum(np.linalg.norm(y, axis=-1, keepdims=True), TINY)
    return np.stack((x, y, np.cross(x, y)), axis=-2)
