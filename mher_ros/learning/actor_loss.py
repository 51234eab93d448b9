"""What the actor is trained to lower."""

from __future__ import annotations

import abc

from mher_ros.learning.batch import Batch
from mher_ros.learning.networks import Networks
from torch import Tensor

__all__ = ['ActorLoss', 'ImitationLoss', 'JointLoss']


class ActorLoss(abc.ABC):
    """A loss of the actor's actions on a batch."""

    @abc.abstractmethod
    def __call__(self, batch: Batch, updates: int) -> Tensor:
        """Return the loss after ``updates`` updates, a scalar with gradient."""


class JointLoss(ActorLoss):
    r"""
    Policy gradient, action penalty and supervised loss together (Eq. 7).

    .. math:: -\overline{Q(s, \pi, g')} + c\,\overline{\pi^2}
              + \alpha\,\overline{mask \cdot (a - \pi)^2}

    The mask leaves the rows that have a new goal; means run over the whole batch all the same.
    The paper sums over an action's k entries (k times this alpha) and has no action penalty; its
    code averages and has one. ``half_life`` updates halve alpha; 0 keeps it as it is.
    """

    def __init__(
        self, networks: Networks, alpha: float, half_life: float, action_penalty: float
    ) -> None:
        self._networks = networks
        self._alpha, self._half_life, self._action_penalty = alpha, half_life, action_penalty

    def __call__(self, batch: Batch, updates: int) -> Tensor:
        """Return the loss."""
        proposed = self._networks.actor(batch.features)
        loss: Tensor = -self._networks.critic(batch.features, proposed).mean()
        if self._action_penalty:
            loss = loss + self._action_penalty * proposed.square().mean()
        if self._alpha:
            squared = (batch.actions - proposed).square().mean(-1)
            loss = loss + self.alpha(updates) * (batch.relabelled * squared).mean()
        return loss

    def alpha(self, updates: int) -> float:
        """Return the weight of the supervised loss after ``updates`` updates."""
        faded = 0.5 ** (updates / self._half_life) if self._half_life else 1.0
        return self._alpha * faded


class ImitationLoss(ActorLoss):
    r"""
    Supervised loss alone, on the relabelled rows (Ghosh et al. 2021).

    .. math:: \overline{(a - \pi(s, g'))^2}

    The mean runs over the relabelled rows and over an action's entries.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks

    def __call__(self, batch: Batch, updates: int) -> Tensor:
        """Return the loss, 0 where no row is relabelled."""
        squared = (batch.actions - self._networks.actor(batch.features)).square().mean(-1)
        return (batch.relabelled * squared).sum() / batch.relabelled.sum().clamp_min(1.0)
