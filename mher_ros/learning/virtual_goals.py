"""Model-based relabelling: goals that the current policy would reach next (Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Callable

from mher_ros.interface import TaskInterface
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.relabel import GoalSource
from mher_ros.learning.replay import Transitions
import numpy as np
from numpy.typing import NDArray
import torch
from torch import Tensor

__all__ = ['VirtualGoals']


class VirtualGoals(GoalSource):
    r"""
    Goals achieved on an n-step model rollout from the real :math:`s_{t+1}`.

    The rollout is driven by ``policy`` under the original goal, so the goals close in on the
    desired ones as the policy improves (Theorem 2).
    """

    def __init__(
        self,
        dynamics: Dynamics,
        policy: Callable[[Tensor, Tensor], Tensor],
        interface: TaskInterface,
        steps: int,
        noise: float,
    ) -> None:
        self._dynamics, self._policy, self._interface = dynamics, policy, interface
        self._steps, self._noise = steps, noise

    def propose(self, batch: Transitions, rng: np.random.Generator) -> NDArray[np.float32]:
        """Return the goal of one of the n + 1 states (the real one counts), uniformly."""
        count = len(batch.steps)
        goals = torch.from_numpy(batch.goals)

        def act(observations: Tensor) -> Tensor:
            actions = self._policy(observations, goals)
            if self._noise:
                noise = rng.standard_normal(actions.shape, dtype=np.float32)
                actions = (actions + self._noise * torch.from_numpy(noise)).clamp(-1.0, 1.0)
            return actions

        start = torch.from_numpy(batch.next_observations)
        states = self._dynamics.rollout(start, act, self._steps)
        chosen = states[rng.integers(self._steps + 1, size=count), np.arange(count)]
        proposed: NDArray[np.float32] = self._interface.achieved_goal(chosen).numpy()
        return proposed
