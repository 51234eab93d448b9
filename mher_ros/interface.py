"""What a policy sees and says, declared once by the task and carried along by the policy file."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['ACTION_MEANINGS', 'Field', 'TaskInterface']

ACTION_MEANINGS = {
    'displacement': 'the position moves by scale * a',
    'tool_displacement': 'the tool is led towards scale * a from where it is now',
    'target_displacement': (
        'the tool is led towards a target that moves by scale * a, kept inside the goal box'
    ),
    'joint_torque': 'each joint gets the torque scale * a',
}


@dataclasses.dataclass(frozen=True)
class Field:
    """One entry of an observation, goal or action vector."""

    name: str
    """Unique within its vector, for example ``tool_position_x``."""
    unit: str
    """SI unit, or a product such as ``m/s * 0.04 s``; ``1`` where there is none."""
    nominal: float = 0.0
    """Value to assume on an arm that does not have the quantity (a fixed finger, say)."""
    scale: float = 1.0
    """Actions: the quantity commanded, in ``unit``, by an entry of 1. 0 means ignored."""


@dataclasses.dataclass(frozen=True)
class TaskInterface:
    r"""
    The task as deployment needs to know it.

    An observation :math:`s` is a vector of ``observation`` fields, a goal :math:`g` of ``goal``
    fields, an action :math:`a \in [-1, 1]^k` of ``action`` fields.
    """

    task: str
    """Name under which ``mher_ros.tasks.make`` builds it."""
    observation: tuple[Field, ...]
    goal: tuple[Field, ...]
    action: tuple[Field, ...]
    action_meaning: str
    """How a command is made of an action: one of ``ACTION_MEANINGS``."""
    frame: str
    """Frame in which positions, goals and displacements are given."""
    control_period: float
    """Time between two actions [s]."""
    episode_steps: int
    """Steps after which success is judged."""
    goal_low: tuple[float, ...]
    goal_high: tuple[float, ...]
    """Box that holds every goal the task draws (the trained workspace)."""
    success_threshold: float
    """Largest distance between achieved and desired goal that counts, in the goal's unit."""
    achieved_index: tuple[int, ...]
    r"""Entries of the observation that are the achieved goal: :math:`\phi(s) = s[index]`."""
    goal_index: tuple[int, ...] = ()
    """Entries of the observation that repeat the desired goal, if any."""

    def achieved_goal(self, observation: Any) -> Any:
        r"""Return :math:`\phi(s)` of arrays or tensors of shape ``(..., n)`` as ``(..., m)``."""
        first, count = self.achieved_index[0], len(self.achieved_index)
        return observation[..., first : first + count]

    def with_goal(self, observation: Any, goal: Any) -> Any:
        """Return ``observation`` as it would read under ``goal`` (a copy where they differ)."""
        if not self.goal_index:
            return observation
        copy = observation.clone() if hasattr(observation, 'clone') else observation.copy()
        first, count = self.goal_index[0], len(self.goal_index)
        copy[..., first : first + count] = goal
        return copy

    def distance(self, achieved: ArrayLike, desired: ArrayLike) -> NDArray[np.floating]:
        """Return the Euclidean distance between goals of shape ``(..., m)`` as ``(...)``."""
        return np.linalg.norm(np.asarray(achieved) - np.asarray(desired), axis=-1)

    def reward(self, achieved: ArrayLike, desired: ArrayLike) -> NDArray[np.float32]:
        """Return 0 within the success threshold and -1 outside, vectorised (Eq. 1)."""
        within = self.distance(achieved, desired) <= self.success_threshold
        return np.where(within, np.float32(0.0), np.float32(-1.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self)

    def __post_init__(self) -> None:
        """Check the meaning of actions, and that indices are runs inside the observation."""
        if self.action_meaning not in ACTION_MEANINGS:
            known = ', '.join(ACTION_MEANINGS)
            raise ValueError(
                f'{self.task}: action_meaning is one of {known}; got {self.action_meaning!r}'
            )
        n, m = len(self.observation), len(self.goal)
        runs = [tuple(range(first, first + m)) for first in range(n - m + 1)]
        for index, allowed in ((self.achieved_index, runs), (self.goal_index, [(), *runs])):
            if index not in allowed:
                raise ValueError(f'{self.task}: {index} is not a run of {m} of the {n} entries')
