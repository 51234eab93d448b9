"""Actor-critic update: losses of the actor and targets of the critic."""

from collections.abc import Callable
import dataclasses

from mher_ros.learning.config import AgentConfig
from mher_ros.learning.core.networks import minimise, Networks, optimise
from mher_ros.learning.model import ModelRollouts
from mher_ros.learning.relabel.samplers import Batch
import torch
from torch import Tensor

ActorLoss = Callable[[Batch, int], Tensor]
"""Batch and number of updates so far to the scalar loss of the actor."""


class ActorCritic:
    """One gradient step of actor and critic per batch; without ``target``, of the actor only."""

    def __init__(
        self, networks: Networks, target: 'CriticTarget | None', loss: ActorLoss, *rates: float
    ) -> None:
        self._networks, self._target, self._loss = networks, target, loss
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Adam(network.parameters(), lr=rate, fused=True)
            for network, rate in zip((networks.actor, networks.critic), rates, strict=True)
        ]

    def learn(self, batch: Batch, updates: int) -> dict[str, float]:
        """Do one gradient step per network and return the losses before it."""
        losses = {'actor_loss': self._loss(batch, updates)}
        if self._target is not None:
            value = self._networks.critic(batch.features, batch.actions)
            losses['critic_loss'] = (value - self._target(batch)).square().mean()
        # As in the authors' code, all gradients are computed before any network changes.
        steps = [
            (optimiser, torch.autograd.grad(loss, optimiser.param_groups[0]['params']))
            for optimiser, loss in zip(self.optimisers, losses.values(), strict=False)
        ]
        for optimiser, gradients in steps:
            optimise(optimiser, gradients)
        return {name: float(loss.detach()) for name, loss in losses.items()}

    def learn_actor(self, batch: Batch, loss: ActorLoss, updates: int) -> float:
        """Do one gradient step of the actor only, with another loss, and return that loss."""
        value = loss(batch, updates)
        minimise(self.optimisers[0], value)
        return float(value.detach())


@dataclasses.dataclass(frozen=True)
class JointLoss:
    r"""
    Policy gradient, action penalty and supervised loss together (Eq. 7).

    .. math:: -\overline{Q(s, \pi, g')} + c\,\overline{\pi^2}
              + \alpha\,\overline{mask \cdot (a - \pi)^2}

    The mask is 1 for relabelled rows; the means are over the whole batch. The paper sums over the
    k entries of an action (k times this alpha) and has no action penalty; its code averages and
    has one. Alpha halves every ``alpha_half_life`` updates; 0: alpha is constant.
    """

    networks: Networks
    config: AgentConfig

    def __call__(self, batch: Batch, updates: int) -> Tensor:
        config, proposed = self.config, self.networks.actor(batch.features)
        loss: Tensor = -self.networks.critic(batch.features, proposed).mean()
        if config.action_penalty:
            loss = loss + config.action_penalty * proposed.square().mean()
        if config.alpha:
            squared = (batch.actions - proposed).square().mean(-1)
            half_life = config.alpha_half_life
            alpha = config.alpha * (0.5 ** (updates / half_life) if half_life else 1.0)
            loss = loss + alpha * (batch.relabelled * squared).mean()
        return loss


@dataclasses.dataclass(frozen=True)
class ImitationLoss:
    r"""
    Supervised loss on the relabelled rows only (Ghosh et al. 2021); 0 if there are none.

    .. math:: \overline{(a - \pi(s, g'))^2}

    The mean is over the relabelled rows and the entries of an action.
    """

    networks: Networks

    def __call__(self, batch: Batch, updates: int) -> Tensor:
        squared = (batch.actions - self.networks.actor(batch.features)).square().mean(-1)
        return (batch.relabelled * squared).sum() / batch.relabelled.sum().clamp_min(1.0)


@dataclasses.dataclass(frozen=True)
class CriticTarget:
    r"""
    Targets of the critic: H rewards, then the value of the target networks.

    .. math:: y = \sum_{i=0}^{H-1} \gamma^i \hat r_{t+i}
              + \gamma^H Q'(\hat s_{t+H}, \pi'(\hat s_{t+H}, g'), g')

    The first reward and :math:`s_{t+1}` are real; H - 1 steps of the model follow (Feinberg et al.
    2018). H = 1 is the usual target (below Eq. 3). Rewards are in [-1, 0] and episodes never
    terminate, so targets are clipped to :math:`[-1 / (1 - \gamma), ceiling]`.
    """

    networks: Networks
    config: AgentConfig
    model: ModelRollouts | None = None

    @torch.no_grad()
    def __call__(self, batch: Batch) -> Tensor:
        """Return targets (B,), without gradient."""
        target, last, networks = batch.rewards, batch.next_observations, self.networks
        gamma, steps = self.config.gamma, self.config.target_steps
        if self.model is not None and steps > 1:
            interface = self.model.interface
            states, _ = self.model.run(last, batch.goals, steps - 1)
            for ahead, last in enumerate(states[1:], 1):
                achieved = interface.achieved_goal(last)
                reward = interface.reward(achieved, batch.goals, batch.threshold_factor)
                target = target + gamma**ahead * torch.from_numpy(reward)
        features = networks.encoder(last, batch.goals)
        value = networks.target_critic(features, networks.target_actor(features))
        target = target + gamma**steps * value
        return target.clamp(-1.0 / (1.0 - gamma), self.config.value_ceiling)
