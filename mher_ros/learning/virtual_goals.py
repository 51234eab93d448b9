"""Model-based relabelling: goals that the current policy would reach next (Sec. 4.2)."""

from __future__ import annotations

from mher_ros.interface import TaskInterface
from mher_ros.learning.imagination import Imagination
from mher_ros.learning.relabel import GoalSource, Rows
from mher_ros.learning.replay import Transitions
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['VirtualGoals']


class VirtualGoals(GoalSource):
    r"""
    Goals achieved on an n-step model rollout from the real :math:`s_{t+1}`.

    The rollout is driven by the policy under the original goal, so the goals close in on the
    desired ones as the policy improves (Theorem 2).
    """

    def __init__(self, imagination: Imagination, interface: TaskInterface, steps: int) -> None:
        self._imagination, self._interface, self._steps = imagination, interface, steps

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return the goal of one of the n + 1 states (the real one counts), uniformly."""
        count = len(batch.steps)
        start = self._interface.with_goal(batch.next_observations, batch.goals)
        noise = self._imagination.noise(self._steps, count, rng)
        lengths = rng.integers(self._steps + 1, size=count)
        if wanted is not None:
            lengths = np.where(wanted, lengths, 0)
        chosen = self._imagination.ends(
            torch.from_numpy(start), torch.from_numpy(batch.goals), lengths, noise
        )
        proposed: NDArray[np.float32] = self._interface.achieved_goal(chosen).numpy()
        return proposed
