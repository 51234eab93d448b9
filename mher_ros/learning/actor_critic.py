"""Actor and critic, and how they learn from a batch."""

from __future__ import annotations

from mher_ros.learning.actor_loss import ActorLoss
from mher_ros.learning.batch import Batch
from mher_ros.learning.networks import Networks
from mher_ros.learning.targets import CriticTarget
import torch
from torch import nn, Tensor

__all__ = ['ActorCritic']


class ActorCritic:
    """
    Takes one step of each optimiser a batch.

    Without a ``target`` only the actor learns.
    """

    def __init__(
        self,
        networks: Networks,
        target: CriticTarget | None,
        loss: ActorLoss,
        actor_rate: float,
        critic_rate: float,
    ) -> None:
        self._networks, self._target, self._loss = networks, target, loss
        self._actor_optimiser = _adam(networks.actor, actor_rate)
        self._critic_optimiser = _adam(networks.critic, critic_rate)

    @property
    def optimisers(self) -> list[torch.optim.Optimizer]:
        """Those of the actor and of the critic."""
        return [self._actor_optimiser, self._critic_optimiser]

    def learn(self, batch: Batch, updates: int) -> dict[str, float]:
        """Do one update and return the losses before it."""
        losses = {'actor_loss': self._loss(batch, updates)}
        if self._target is not None:
            value = self._networks.critic(batch.features, batch.actions)
            losses['critic_loss'] = (value - self._target(batch)).square().mean()
        optimisers = {
            'critic_loss': self._critic_optimiser,
            'actor_loss': self._actor_optimiser,
        }
        # All gradients are taken before any network moves, as the authors do.
        gradients = {
            name: torch.autograd.grad(loss, optimisers[name].param_groups[0]['params'])
            for name, loss in losses.items()
        }
        for name, gradient in gradients.items():
            _step(optimisers[name], gradient)
        return {name: float(loss.detach()) for name, loss in losses.items()}

    def learn_actor(self, batch: Batch, loss: ActorLoss, updates: int) -> float:
        """Do one step of the actor alone under another loss, and return that loss."""
        value = loss(batch, updates)
        parameters = self._actor_optimiser.param_groups[0]['params']
        _step(self._actor_optimiser, torch.autograd.grad(value, parameters))
        return float(value.detach())


def _adam(network: nn.Module, rate: float) -> torch.optim.Adam:
    return torch.optim.Adam(network.parameters(), lr=rate, fused=True)


def _step(optimiser: torch.optim.Optimizer, gradients: tuple[Tensor, ...]) -> None:
    for parameter, gradient in zip(optimiser.param_groups[0]['params'], gradients, strict=True):
        parameter.grad = gradient
    optimiser.step()
