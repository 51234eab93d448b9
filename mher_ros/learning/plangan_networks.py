"""Conditional GANs that imagine the next step towards a goal (PlanGAN, Sec. 4)."""

from __future__ import annotations

import copy
import dataclasses

from mher_ros.interface import TaskInterface
from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.networks import View
from mher_ros.learning.normaliser import Normaliser
from mher_ros.learning.plangan_config import PlanConfig
import torch
from torch import nn, Tensor
from torch.nn import functional

__all__ = ['GanCritics', 'Gans', 'Generators', 'Space', 'Steps', 'critic_loss', 'generator_loss']


@dataclasses.dataclass(frozen=True)
class Steps:
    """T steps of B sequences for each of E GANs, each step under a goal still ahead of it."""

    observations: Tensor
    """(E, T, B, n)"""
    actions: Tensor
    """(E, T, B, k)"""
    next_observations: Tensor
    """(E, T, B, n)"""
    goals: Tensor
    """(E, T, B, m)"""


class Space(nn.Module):
    """What all the networks see of states, goals and changes of state."""

    def __init__(self, interface: TaskInterface, relative: bool, hide_still: bool) -> None:
        super().__init__()
        self.interface = interface
        self.view = View(interface, relative, hide_still)
        self.change = Normaliser(len(interface.observation))

    def see(self, observations: Tensor, next_observations: Tensor, goals: Tensor) -> None:
        """Take a batch into the running statistics."""
        self.view.update(self.interface.with_goal(observations, goals), goals)
        self.change.update(next_observations - observations)

    def features(self, observations: Tensor, goals: Tensor) -> Tensor:
        """Return features (..., f) of observations (..., n); goals (..., m) broadcast."""
        goals = goals.expand(*observations.shape[:-1], goals.shape[-1])
        features: Tensor = self.view(self.interface.with_goal(observations, goals), goals)
        return features

    def moved(self, observations: Tensor, changes: Tensor, goals: Tensor) -> Tensor:
        """Return the observations (..., n) that normalised changes lead to."""
        moved = observations + (self.change.mean + self.change.std * changes)
        following: Tensor = self.interface.with_goal(moved, goals)
        return following


class _Layers(nn.Module):
    """Linear layers of E networks, those of all in one tensor a layer, Xavier-uniform."""

    def __init__(self, networks: int, sizes: tuple[int, ...], rng: torch.Generator) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for inputs, outputs in zip(sizes, sizes[1:], strict=False):
            weight = torch.empty(networks, inputs, outputs)
            for member in weight:
                nn.init.xavier_uniform_(member, generator=rng)
            self.weights.append(nn.Parameter(weight))
            self.biases.append(nn.Parameter(torch.zeros(networks, 1, outputs)))


class Generators(_Layers):
    """Features and random numbers to actions in [-1, 1]^k and normalised changes of state."""

    def __init__(self, space: Space, config: PlanConfig, rng: torch.Generator) -> None:
        n, k = len(space.interface.observation), len(space.interface.action)
        sizes = (space.view.size + config.latent, *config.hidden, k + n)
        super().__init__(config.gans, sizes, rng)
        self._features, self._action = space.view.size, k

    def forward(self, features: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """
        Return actions (E, C, M, k) and changes (E, C, M, n) for features (E, C, M, f).

        Each latent (E, C, l) is shared by M rows.
        """
        # What rows share is multiplied once, apart from what they do not.
        weight = self.weights[0]
        hidden = features.flatten(1, 2) @ weight[:, : self._features]
        shared = torch.baddbmm(self.biases[0], latent, weight[:, self._features :])
        hidden = (hidden.view(*features.shape[:3], -1) + shared[:, :, None]).flatten(1, 2)
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = torch.baddbmm(bias, hidden.relu(), weight)
        output = hidden.view(*features.shape[:3], -1)
        return torch.tanh(output[..., : self._action]), output[..., self._action :]


class GanCritics(_Layers):
    """
    Score how real a step towards a goal looks; high is real.

    Hidden layers are divided by their largest singular value (Miyato et al. 2018), which keeps
    the Wasserstein loss bounded; weight decay keeps the last layer small.
    """

    def __init__(self, space: Space, config: PlanConfig, rng: torch.Generator) -> None:
        n, k = len(space.interface.observation), len(space.interface.action)
        super().__init__(config.gans, (space.view.size + k + n, *config.hidden, 1), rng)
        for index, weight in enumerate(self.weights[:-1]):
            start = torch.randn(config.gans, 1, weight.shape[1], generator=rng)
            self.register_buffer(f'direction{index}', functional.normalize(start, dim=-1))
        for _ in range(20):
            self.follow_weights()

    def forward(self, features: Tensor, actions: Tensor, changes: Tensor) -> Tensor:
        """Return scores (E, T, B) of steps (E, T, B, ...)."""
        inputs = torch.cat((features, actions, changes), -1)
        hidden = inputs.flatten(1, 2)
        for index, (weight, bias) in enumerate(
            zip(self.weights[:-1], self.biases[:-1], strict=True)
        ):
            largest = (self._direction(index) @ weight).norm(dim=-1, keepdim=True)
            hidden = functional.leaky_relu(torch.baddbmm(bias, hidden, weight / largest))
        return torch.baddbmm(self.biases[-1], hidden, self.weights[-1]).view(inputs.shape[:3])

    @torch.no_grad()
    def follow_weights(self) -> None:
        """Turn the estimates of the most stretched directions after the weights have moved."""
        for index, weight in enumerate(self.weights[:-1]):
            direction = self._direction(index)
            turned = direction @ weight @ weight.mT
            direction.copy_(functional.normalize(turned, dim=-1))

    def _direction(self, index: int) -> Tensor:
        return self.get_buffer(f'direction{index}')


class Gans(nn.Module):
    """
    Generators and their critics, trained on sequences relabelled in hindsight.

    Generators and critics chase each other in circles, far wider than the little by which
    hindsight tells one goal from another; what they circle around is in ``slow_generators``, their
    mean over time (Yazici et al. 2019). The authors of PlanGAN take many more, smaller steps.
    """

    def __init__(self, space: Space, config: PlanConfig, rng: torch.Generator) -> None:
        super().__init__()
        self.space, self._consistency, self._keep = space, config.consistency, config.average_keep
        self.generators = Generators(space, config, rng)
        self.slow_generators = copy.deepcopy(self.generators).requires_grad_(False)
        self.critics = GanCritics(space, config, rng)
        self.optimisers = [
            torch.optim.Adam(
                networks.parameters(),
                lr=config.learning_rate,
                betas=(0.5, 0.999),
                weight_decay=config.weight_decay,
                fused=True,
            )
            for networks in (self.critics, self.generators)
        ]

    def fit(self, real: Steps, latent: Tensor, dynamics: Dynamics) -> dict[str, float]:
        """Do one step of each critic, then one of each generator; latent (E, T, B, l)."""
        imagined = self.imagine(real.observations[:, 0], real.goals, latent)
        fixed = Steps(
            imagined.observations.detach(),
            imagined.actions.detach(),
            imagined.next_observations.detach(),
            imagined.goals,
        )
        critic = critic_loss(self.score(real), self.score(fixed))
        _step(self.optimisers[0], critic)
        self.critics.follow_weights()
        error = self.disagreement(imagined, dynamics)
        generator = generator_loss(self.score(imagined), error, self._consistency)
        _step(self.optimisers[1], generator)
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.slow_generators.parameters()),
                list(self.generators.parameters()),
                1.0 - self._keep,
            )
        networks = len(latent)
        return {
            'critic_loss': float(critic.detach()) / networks,
            'generator_loss': float(generator.detach()) / networks,
        }

    def imagine(self, observations: Tensor, goals: Tensor, latent: Tensor) -> Steps:
        """Return T steps from observations (E, B, n) under goals (E, T, B, m)."""
        space = self.space
        before: list[Tensor] = []
        actions: list[Tensor] = []
        after = [observations]
        for goal, random in zip(goals.unbind(1), latent.unbind(1), strict=True):
            before.append(space.interface.with_goal(after[-1], goal))
            features = space.features(before[-1], goal)[:, :, None]
            action, change = self.generators(features, random)
            actions.append(action[:, :, 0])
            after.append(space.moved(before[-1], change[:, :, 0], goal))
        return Steps(
            torch.stack(before, 1), torch.stack(actions, 1), torch.stack(after[1:], 1), goals
        )

    def score(self, steps: Steps) -> Tensor:
        """Return each critic's scores (E, T, B) of its steps."""
        space = self.space
        scores: Tensor = self.critics(
            space.features(steps.observations, steps.goals),
            steps.actions,
            space.change(steps.next_observations - steps.observations),
        )
        return scores

    def disagreement(self, steps: Steps, dynamics: Dynamics) -> Tensor:
        """Return next state less the model's (E, T, B, n), in standard deviations of a change."""
        states = steps.observations.detach()
        predicted = dynamics.step(states.flatten(0, 2), steps.actions.detach().flatten(0, 2))
        predicted = self.space.interface.with_goal(predicted.view_as(states), steps.goals)
        return (steps.next_observations - predicted) / self.space.change.std


def critic_loss(real: Tensor, imagined: Tensor) -> Tensor:
    """Return how badly scores (E, T, B) tell real from imagined steps, summed over the E."""
    return (imagined.mean((1, 2)) - real.mean((1, 2))).sum()


def generator_loss(imagined: Tensor, error: Tensor, consistency: float) -> Tensor:
    """
    Return what generators lower, summed over the E: look real, and agree with the model.

    ``imagined`` are scores (E, T, B), ``error`` (E, T, B, n) is what ``disagreement`` returns.
    """
    return (consistency * error.square().mean((1, 2, 3)) - imagined.mean((1, 2))).sum()


def _step(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    parameters = optimiser.param_groups[0]['params']
    for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        parameter.grad = gradient
    optimiser.step()
