"""Conditional GANs that generate the next step towards a goal (PlanGAN, Sec. 4)."""

from typing import NamedTuple

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import AgentConfig, PlanConfig
from mher_ros.learning.core.networks import (
    ensemble_layers,
    InputEncoder,
    minimise,
    Normaliser,
    target_copy,
)
from mher_ros.learning.model import Dynamics
import torch
from torch import nn, Tensor
from torch.nn import functional


class Steps(NamedTuple):
    """T steps of B sequences for each of E GANs; goals are achieved at later steps."""

    observations: Tensor  # (E, T, B, n)
    actions: Tensor  # (E, T, B, k)
    next_observations: Tensor  # (E, T, B, n)
    goals: Tensor  # (E, T, B, m)


class GanEncoder(InputEncoder):
    """Network inputs of the GANs, with normalised changes of state."""

    def __init__(self, interface: TaskInterface, config: AgentConfig) -> None:
        super().__init__(interface, config)
        self.change = Normaliser(len(interface.observation))

    def update_statistics(self, observations: Tensor, following: Tensor, goals: Tensor) -> None:
        super().update_statistics(observations, following, goals)
        self.change.update(following - observations)

    def features(self, observations: Tensor, goals: Tensor) -> Tensor:
        """Return features (..., f) of observations (..., n); goals (..., m) broadcast."""
        goals = goals.expand(*observations.shape[:-1], goals.shape[-1])
        return self(self.interface.with_goal(observations, goals), goals)

    def next_observations(self, observations: Tensor, changes: Tensor, goals: Tensor) -> Tensor:
        """Return the observations (..., n) after normalised changes."""
        following = observations + (self.change.mean + self.change.std * changes)
        return self.interface.with_goal(following, goals)


class _Layers(nn.Module):
    """Linear layers of E networks, one tensor per layer, Xavier-uniform."""

    def __init__(self, networks: int, sizes: tuple[int, ...], rng: torch.Generator) -> None:
        super().__init__()
        weights, biases = zip(*ensemble_layers(networks, sizes, rng), strict=True)
        self.weights = nn.ParameterList(map(nn.Parameter, weights))
        self.biases = nn.ParameterList(map(nn.Parameter, biases))


class Generators(_Layers):
    """Features and latents to actions in [-1, 1]^k and normalised changes of state."""

    def __init__(self, encoder: GanEncoder, config: PlanConfig, rng: torch.Generator) -> None:
        n, k = len(encoder.interface.observation), len(encoder.interface.action)
        sizes = (encoder.size + config.latent, *config.hidden, k + n)
        super().__init__(config.gans, sizes, rng)
        self._features, self._action = encoder.size, k

    def forward(self, features: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions (E, C, M, k) and changes (E, C, M, n) for features (E, C, M, f)."""
        # M rows share each latent (E, C, l), so its part of the first layer is computed once.
        weight = self.weights[0]
        hidden = features.flatten(1, 2) @ weight[:, : self._features]
        shared = torch.baddbmm(self.biases[0], latent, weight[:, self._features :])
        hidden = (hidden.view(*features.shape[:3], -1) + shared[:, :, None]).flatten(1, 2)
        for weight, bias in zip(self.weights[1:], self.biases[1:], strict=True):
            hidden = torch.baddbmm(bias, hidden.relu(), weight)
        output = hidden.view(*features.shape[:3], -1)
        return torch.tanh(output[..., : self._action]), output[..., self._action :]


class GanCritics(_Layers):
    """Score steps towards a goal; a high score means real."""

    def __init__(self, encoder: GanEncoder, config: PlanConfig, rng: torch.Generator) -> None:
        n, k = len(encoder.interface.observation), len(encoder.interface.action)
        super().__init__(config.gans, (encoder.size + k + n, *config.hidden, 1), rng)
        for index, weight in enumerate(self.weights[:-1]):
            start = torch.randn(config.gans, 1, weight.shape[1], generator=rng)
            self.register_buffer(f'direction{index}', functional.normalize(start, dim=-1))
        for _ in range(20):
            self.update_singular_vectors()

    def forward(self, features: Tensor, actions: Tensor, changes: Tensor) -> Tensor:
        """Return scores (E, T, B) of steps (E, T, B, ...)."""
        # Spectral normalisation of hidden layers (Miyato et al. 2018) and weight decay of the last
        # layer bound the Wasserstein loss.
        inputs = torch.cat((features, actions, changes), -1)
        hidden = inputs.flatten(1, 2)
        layers = zip(self.weights[:-1], self.biases[:-1], strict=True)
        for index, (weight, bias) in enumerate(layers):
            direction = self.get_buffer(f'direction{index}')
            largest = (direction @ weight).norm(dim=-1, keepdim=True)
            hidden = functional.leaky_relu(torch.baddbmm(bias, hidden, weight / largest))
        return torch.baddbmm(self.biases[-1], hidden, self.weights[-1]).view(inputs.shape[:3])

    @torch.no_grad()
    def update_singular_vectors(self) -> None:
        """Do one power iteration for the largest singular value of each hidden layer."""
        for index, weight in enumerate(self.weights[:-1]):
            direction = self.get_buffer(f'direction{index}')
            direction.copy_(functional.normalize(direction @ weight @ weight.mT, dim=-1))


class Gans(nn.Module):
    """Generators and their critics, trained on sequences relabelled in hindsight."""

    def __init__(self, encoder: GanEncoder, config: PlanConfig, rng: torch.Generator) -> None:
        # GAN training oscillates. ``average_generators``, the exponential moving average of the
        # weights (Yazici et al. 2019), does not. The PlanGAN authors take more and smaller steps.
        super().__init__()
        self.encoder, self._consistency = encoder, config.consistency
        self._decay = config.ema_decay
        self.generators = Generators(encoder, config, rng)
        self.average_generators = target_copy(self.generators)
        self.critics = GanCritics(encoder, config, rng)
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
        """Do a gradient step of the critics, then of the generators; latent (E, T, B, l)."""
        generated = self.generate(real.observations[:, 0], real.goals, latent)
        fixed = Steps(*(part.detach() for part in generated))
        critic = critic_loss(self.score(real), self.score(fixed))
        minimise(self.optimisers[0], critic)
        self.critics.update_singular_vectors()
        error = self.model_difference(generated, dynamics)
        generator = generator_loss(self.score(generated), error, self._consistency)
        minimise(self.optimisers[1], generator)
        with torch.no_grad():
            average, latest = self.average_generators.parameters(), self.generators.parameters()
            torch._foreach_lerp_(list(average), list(latest), 1.0 - self._decay)
        losses = {'critic_loss': critic, 'generator_loss': generator}
        return {name: float(loss.detach()) / len(latent) for name, loss in losses.items()}

    def generate(self, observations: Tensor, goals: Tensor, latent: Tensor) -> Steps:
        """Return T steps from observations (E, B, n) with goals (E, T, B, m)."""
        encoder = self.encoder
        before, actions, after = list[Tensor](), list[Tensor](), [observations]
        for goal, random in zip(goals.unbind(1), latent.unbind(1), strict=True):
            before.append(encoder.interface.with_goal(after[-1], goal))
            features = encoder.features(before[-1], goal)[:, :, None]
            action, change = self.generators(features, random)
            actions.append(action[:, :, 0])
            after.append(encoder.next_observations(before[-1], change[:, :, 0], goal))
        return Steps(
            torch.stack(before, 1), torch.stack(actions, 1), torch.stack(after[1:], 1), goals
        )

    def score(self, steps: Steps) -> Tensor:
        features = self.encoder.features(steps.observations, steps.goals)
        change = self.encoder.change(steps.next_observations - steps.observations)
        return self.critics(features, steps.actions, change)

    def model_difference(self, steps: Steps, dynamics: Dynamics) -> Tensor:
        """Return next states minus the model's (E, T, B, n), in standard deviations of changes."""
        states = steps.observations.detach()
        predicted = dynamics.step(states.flatten(0, 2), steps.actions.detach().flatten(0, 2))
        predicted = self.encoder.interface.with_goal(predicted.view_as(states), steps.goals)
        return (steps.next_observations - predicted) / self.encoder.change.std


def critic_loss(real: Tensor, generated: Tensor) -> Tensor:
    """Return the Wasserstein loss of scores (E, T, B), summed over the GANs."""
    return (generated.mean((1, 2)) - real.mean((1, 2))).sum()


def generator_loss(generated: Tensor, error: Tensor, consistency: float) -> Tensor:
    """Return the loss of scores (E, T, B) and model differences (E, T, B, n), summed over GANs."""
    return (consistency * error.square().mean((1, 2, 3)) - generated.mean((1, 2))).sum()
