"""Actor, critic, their inputs, and running normalisation."""

from __future__ import annotations

from collections.abc import Sequence
import copy
import dataclasses
from typing import Any, TypeVar

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import AgentConfig
import numpy as np
from numpy.typing import NDArray
import torch
from torch import nn, Tensor

RAW_LIMIT = 200.0  # observations and goals are clipped to this before normalisation
NORMALISED_LIMIT = 5.0
SMALLEST_STD = 1e-4
Network = TypeVar('Network', bound=nn.Module)
LOWEST_FREQUENCY = 1.5  # of Fourier features [rad per standard deviation]; each next one doubles


class InputEncoder(nn.Module):
    """Network inputs: normalised observation and goal."""

    def __init__(self, interface: TaskInterface, config: AgentConfig) -> None:
        # ``relative_goal``: the networks need not learn to subtract.
        # ``fourier_features``: a ReLU network learns functions that change over a short distance,
        # such as at a wall, slowly from the plain inputs (Tancik et al. 2020).
        # ``workspace_normalisation``: early data cover a small region, so running statistics make
        # distant positions extreme.
        super().__init__()
        self.interface, self._config = interface, config
        n, m = len(interface.observation), len(interface.goal)
        self.observation = Normaliser(n, NORMALISED_LIMIT, config.mask_constant_inputs)
        self.goal = Normaliser(m, NORMALISED_LIMIT)
        self.displacement = Normaliser(m, NORMALISED_LIMIT)
        if config.workspace_normalisation:
            low, high = torch.tensor((interface.goal_low, interface.goal_high))
            middle, width = (low + high) / 2.0, high - low
            self.goal.fix(slice(0, m), middle, width)
            for index in filter(None, (interface.achieved_index, interface.goal_index)):
                self.observation.fix(slice(index[0], index[0] + m), middle, width)
        self.size = (n + m + (m if config.relative_goal else 0)) * (
            1 + 2 * config.fourier_features
        )

    def forward(self, observation: Tensor, goal: Tensor) -> Tensor:
        """Return features (B, size) of raw observations (B, n) and goals (B, m)."""
        observation, goal = (v.clamp(-RAW_LIMIT, RAW_LIMIT) for v in (observation, goal))
        parts = [self.observation(observation), self.goal(goal)]
        if self._config.relative_goal:
            parts.append(self.displacement(goal - self._achieved(observation)))
        numbers = torch.cat(parts, -1)
        if not self._config.fourier_features:
            return numbers
        frequencies = [LOWEST_FREQUENCY * 2.0**i for i in range(self._config.fourier_features)]
        angles = [frequency * numbers for frequency in frequencies]
        return torch.cat((numbers, *map(torch.sin, angles), *map(torch.cos, angles)), -1)

    def _achieved(self, observation: Tensor) -> Tensor:
        if torch.onnx.is_in_onnx_export():
            # A goal map in Python cannot be exported. Observations of an env contain its value,
            # only predicted ones may differ.
            achieved: Tensor = TaskInterface.achieved_goal(self.interface, observation)
            return achieved
        return self.interface.achieved_goal(observation)

    def update_statistics(self, observations: Tensor, following: Tensor, goals: Tensor) -> None:
        """Take observations (B, n), the next ones, and the goals (B, m) that they get."""
        self.update(self.interface.with_goal(observations, goals), goals)

    def update(self, observation: Tensor, goal: Tensor) -> None:
        observation, goal = (v.clamp(-RAW_LIMIT, RAW_LIMIT) for v in (observation, goal))
        self.observation.update(observation)
        self.goal.update(goal)
        self.displacement.update(goal - self.interface.achieved_goal(observation))


class Actor(nn.Module):
    """Features (B, f) to actions (B, k) in [-1, 1]."""

    def __init__(self, features: int, action: int, hidden: tuple[int, ...], rng: torch.Generator):
        super().__init__()
        self.layers = mlp((features, *hidden, action), rng)

    def forward(self, features: Tensor) -> Tensor:
        return torch.tanh(self.layers(features))


class Critic(nn.Module):
    """Features (B, f) and actions (B, k) to values (B,)."""

    def __init__(
        self,
        features: int,
        action: int,
        hidden: tuple[int, ...],
        rng: torch.Generator,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.layers = mlp((features + action, *hidden, 1), rng, layer_norm)

    def forward(self, features: Tensor, action: Tensor) -> Tensor:
        return self.layers(torch.cat((features, action), -1)).squeeze(-1)


class Policy(nn.Module):
    """Raw observation and goal to action: the network that is exported."""

    def __init__(self, encoder: InputEncoder, actor: Actor) -> None:
        super().__init__()
        self.encoder, self.actor = encoder, actor

    def forward(self, observation: Tensor, desired_goal: Tensor) -> Tensor:
        return self.actor(self.encoder(observation, desired_goal))


@dataclasses.dataclass(frozen=True)
class Networks:
    """Networks of an actor-critic agent, with target networks."""

    encoder: InputEncoder
    actor: Actor
    critic: Critic
    target_actor: Actor
    target_critic: Critic

    @classmethod
    def build(cls, interface: TaskInterface, agent: AgentConfig, rng: torch.Generator) -> Networks:
        encoder = InputEncoder(interface, agent)
        sizes = encoder.size, len(interface.action), agent.hidden
        actor = Actor(*sizes, rng)
        critic = Critic(*sizes, rng, agent.layer_norm)
        return cls(encoder, actor, critic, target_copy(actor), target_copy(critic))

    def modules(self) -> dict[str, nn.Module]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @torch.no_grad()
    def update_targets(self, tau: float) -> None:
        """Do one Polyak update of the target networks."""
        pairs = (self.target_actor, self.actor), (self.target_critic, self.critic)
        for target, network in pairs:
            torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), tau)


def mlp(sizes: tuple[int, ...], rng: torch.Generator, layer_norm: bool = False) -> nn.Sequential:
    """Return an MLP with ReLU, Xavier-uniform weights and zero biases."""
    layers: list[nn.Module] = []
    for index, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
        if index:
            layers += [nn.LayerNorm(inputs), nn.ReLU()] if layer_norm else [nn.ReLU()]
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(linear.weight, generator=rng)
        nn.init.zeros_(linear.bias)
        layers.append(linear)
    return nn.Sequential(*layers)


def ensemble_layers(
    members: int, sizes: Sequence[int], rng: torch.Generator
) -> list[tuple[Tensor, Tensor]]:
    """Return Xavier-uniform weights (members, inputs, outputs) and zero biases of each layer."""
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        weight = torch.empty(members, inputs, outputs)
        for member in weight:
            nn.init.xavier_uniform_(member, generator=rng)
        layers.append((weight, torch.zeros(members, 1, outputs)))
    return layers


def target_copy(network: Network) -> Network:
    return copy.deepcopy(network).requires_grad_(False)


def optimise(optimiser: torch.optim.Optimizer, gradients: Sequence[Tensor]) -> None:
    """Do one optimiser step with the given gradients."""
    for parameter, gradient in zip(optimiser.param_groups[0]['params'], gradients, strict=True):
        parameter.grad = gradient
    optimiser.step()


def minimise(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """Do one optimiser step on a loss."""
    optimise(optimiser, torch.autograd.grad(loss, optimiser.param_groups[0]['params']))


def tensor32(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


class Normaliser(nn.Module):
    """Normalises vectors by the running mean and standard deviation of all training data."""

    mean: Tensor
    std: Tensor
    total: Tensor
    total_of_squares: Tensor
    count: Tensor
    varies: Tensor

    def __init__(self, size: int, clip: float = 0.0, mask_constant_inputs: bool = False) -> None:
        # Sums are in double precision. ``mask_constant_inputs`` sets entries to 0 that were
        # constant in all data: the network has learnt nothing about them and must not react.
        super().__init__()
        self._clip, self._mask_constant = clip, mask_constant_inputs
        self._fixed: list[tuple[slice, Tensor, Tensor]] = []
        self.register_buffer('mean', torch.zeros(size))
        self.register_buffer('std', torch.ones(size))
        self.register_buffer('varies', torch.ones(size))
        for name, length in (('total', size), ('total_of_squares', size), ('count', 1)):
            self.register_buffer(name, torch.zeros(length, dtype=torch.float64))

    def forward(self, value: Tensor) -> Tensor:
        normalised = (value - self.mean) / self.std
        if self._mask_constant:
            normalised = normalised * self.varies
        return normalised.clamp(-self._clip, self._clip) if self._clip else normalised

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        wide = values.double()
        self.total += wide.sum(0)
        self.total_of_squares += wide.square().sum(0)
        self.count += len(wide)
        mean = self.total / self.count
        variance = self.total_of_squares / self.count - mean.square()
        self.mean.copy_(mean)
        self.std.copy_(variance.clamp_min(SMALLEST_STD**2).sqrt())
        self.varies.copy_(variance > SMALLEST_STD**2)
        self._apply_fixed()

    def fix(self, entries: slice, mean: Tensor, std: Tensor) -> None:
        """Use constants instead of the running statistics for these entries."""
        self._fixed.append((entries, mean, std.clamp_min(SMALLEST_STD)))
        self._apply_fixed()

    def _apply_fixed(self) -> None:
        for entries, mean, std in self._fixed:
            self.mean[entries], self.std[entries] = mean, std
