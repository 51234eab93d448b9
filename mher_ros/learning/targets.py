"""What the critic is trained towards."""

from __future__ import annotations

import abc

from mher_ros.learning.batch import Batch
from mher_ros.learning.networks import Networks
import torch
from torch import Tensor

__all__ = ['CriticTarget', 'OneStepTarget']


class CriticTarget(abc.ABC):
    """Values that the critic should give for a batch."""

    @abc.abstractmethod
    def __call__(self, batch: Batch) -> Tensor:
        """Return targets (B,), without gradient."""


class OneStepTarget(CriticTarget):
    r"""
    Reward and discounted slow value of what comes next (below Eq. 3).

    .. math:: y = \mathrm{clip}(r + \gamma Q'(s', \pi'(s', g'), g'))

    Rewards lie in [-1, 0] and episodes never terminate, so no value is below
    :math:`-1 / (1 - \gamma)`.
    """

    def __init__(self, networks: Networks, gamma: float, ceiling: float) -> None:
        self._networks, self._gamma, self._ceiling = networks, gamma, ceiling

    @torch.no_grad()
    def __call__(self, batch: Batch) -> Tensor:
        """Return targets (B,)."""
        networks = self._networks
        features = networks.view(batch.next_observations, batch.goals)
        value = networks.target_critic(features, networks.target_actor(features))
        target: Tensor = batch.rewards + self._gamma * value
        return target.clamp(-1.0 / (1.0 - self._gamma), self._ceiling)
