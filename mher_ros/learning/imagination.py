"""The learned dynamics with a policy in it: short episodes that no arm has to run."""

from __future__ import annotations

from collections.abc import Callable

from mher_ros.interface import TaskInterface
from mher_ros.learning.dynamics import Dynamics
import numpy as np
from numpy.typing import NDArray
import torch
from torch import Tensor

__all__ = ['Imagination']


class Imagination:
    """
    Rolls the model forward under a policy.

    ``noise`` is the standard deviation of what is added to the policy's actions where a
    generator is given; actions stay within [-1, 1].
    """

    def __init__(
        self,
        dynamics: Dynamics,
        policy: Callable[[Tensor, Tensor], Tensor],
        interface: TaskInterface,
        noise: float = 0.0,
    ) -> None:
        self._dynamics, self._policy, self._interface = dynamics, policy, interface
        self._noise = noise

    @torch.no_grad()
    def run(
        self,
        observations: Tensor,
        goals: Tensor,
        steps: int,
        rng: np.random.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        """
        Return states (steps + 1, B, n) and the actions (steps, B, k) between them.

        The first states are the given observations, which must read as under ``goals``.
        """
        states, actions = [observations], []
        for _ in range(steps):
            noise = None if rng is None else self.noise(1, len(goals), rng)
            action, following = self._step(states[-1], goals, None if noise is None else noise[0])
            actions.append(action)
            states.append(following)
        return torch.stack(states), torch.stack(actions) if actions else observations.new_empty(0)

    @torch.no_grad()
    def ends(
        self,
        observations: Tensor,
        goals: Tensor,
        lengths: NDArray[np.int64],
        noise: Tensor | None = None,
    ) -> Tensor:
        """
        Return the last states (B, n) of rollouts of ``lengths`` (B,) steps each.

        A row costs the steps it goes and no more. ``noise`` (steps, B, k) is added to actions.
        """
        longest_first = np.argsort(-lengths, kind='stable')
        states, goals = observations[longest_first], goals[longest_first]
        for step in range(lengths.max(initial=0)):
            going = int((lengths > step).sum())
            shaken = None if noise is None else noise[step, longest_first[:going]]
            _, states[:going] = self._step(states[:going], goals[:going], shaken)
        ends = torch.empty_like(states)
        ends[longest_first] = states
        return ends

    def noise(self, steps: int, rows: int, rng: np.random.Generator) -> Tensor | None:
        """Draw what is added to the actions of rollouts (steps, rows, k); None if nothing is."""
        if not self._noise:
            return None
        shape = steps, rows, len(self._interface.action)
        return self._noise * torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))

    def _step(self, states: Tensor, goals: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        action = self._policy(states, goals)
        if noise is not None:
            action = (action + noise).clamp(-1.0, 1.0)
        # A goal that observations repeat stays what it is, whatever the model makes of it.
        following = self._dynamics.step(states, action)
        return action, self._interface.with_goal(following, goals)
