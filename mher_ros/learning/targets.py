"""What the critic is trained towards."""

from __future__ import annotations

import abc

from mher_ros.interface import TaskInterface
from mher_ros.learning.batch import Batch
from mher_ros.learning.imagination import Imagination
from mher_ros.learning.networks import Networks
import torch
from torch import Tensor

__all__ = ['CriticTarget', 'ExpandedTarget', 'OneStepTarget']


class CriticTarget(abc.ABC):
    r"""
    Values that the critic should give for a batch.

    Rewards lie in [-1, 0] and episodes never terminate, so no value is below
    :math:`-1 / (1 - \gamma)`; what lies below that or above ``ceiling`` is cut.
    """

    def __init__(self, networks: Networks, gamma: float, ceiling: float) -> None:
        self._networks, self._gamma, self._ceiling = networks, gamma, ceiling

    @torch.no_grad()
    def __call__(self, batch: Batch) -> Tensor:
        """Return targets (B,), without gradient."""
        return self._target(batch).clamp(-1.0 / (1.0 - self._gamma), self._ceiling)

    @abc.abstractmethod
    def _target(self, batch: Batch) -> Tensor:
        """Return targets (B,) before they are cut."""

    def _slow_value(self, observations: Tensor, goals: Tensor) -> Tensor:
        networks = self._networks
        features = networks.view(observations, goals)
        value: Tensor = networks.target_critic(features, networks.target_actor(features))
        return value


class OneStepTarget(CriticTarget):
    r"""
    Reward and discounted slow value of what comes next (below Eq. 3).

    .. math:: y = r + \gamma Q'(s', \pi'(s', g'), g')
    """

    def _target(self, batch: Batch) -> Tensor:
        return batch.rewards + self._gamma * self._slow_value(batch.next_observations, batch.goals)


class ExpandedTarget(CriticTarget):
    r"""
    Model-based value expansion (Feinberg et al. 2018): H rewards before the slow value.

    .. math:: y = \sum_{i=0}^{H-1} \gamma^i \hat r_{t+i}
              + \gamma^H Q'(\hat s_{t+H}, \pi'(\hat s_{t+H}, g'), g')

    The first reward and :math:`s_{t+1}` are real; H - 1 steps of the model follow.
    """

    def __init__(
        self,
        networks: Networks,
        gamma: float,
        ceiling: float,
        imagination: Imagination,
        interface: TaskInterface,
        steps: int,
    ) -> None:
        super().__init__(networks, gamma, ceiling)
        self._imagination, self._interface, self._steps = imagination, interface, steps

    def _target(self, batch: Batch) -> Tensor:
        states, _ = self._imagination.run(batch.next_observations, batch.goals, self._steps - 1)
        target = batch.rewards.clone()
        for ahead, state in enumerate(states[1:], 1):
            reached = self._interface.achieved_goal(state)
            reward = torch.from_numpy(self._interface.reward(reached, batch.goals))
            target += self._gamma**ahead * reward
        last = self._gamma**self._steps * self._slow_value(states[-1], batch.goals)
        return target + last
