"""The dynamics model: an ensemble of networks, and rollouts of a policy in it."""

from collections.abc import Callable, Sequence
import dataclasses
import itertools

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import ModelConfig
from mher_ros.learning.core.networks import ensemble_layers, Normaliser, optimise
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
import torch
from torch import nn, Tensor


class Dynamics(nn.Module):
    r"""
    Predicts the change of the normalised observation from observation and action.

    .. math:: s_{t+1} = s_t + \sigma \odot m(s_t, a_t)

    Each layer has one tensor with the weights of all members, so a prediction is one batched
    call; each member has its own optimiser for its slice of the weights.
    """

    def __init__(
        self, observation: int, action: int, config: ModelConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        self._config = config
        self.observation = Normaliser(observation)
        self.action = Normaliser(action)
        sizes = (observation + action, *config.hidden, observation)
        self._layers = ensemble_layers(config.members, sizes, rng)
        for index, (weight, bias) in enumerate(self._layers):
            self.register_buffer(f'weight{index}', weight)
            self.register_buffer(f'bias{index}', bias)
        self._members = [
            [
                tuple(tensor.detach()[member].requires_grad_() for tensor in layer)
                for layer in self._layers
            ]
            for member in range(config.members)
        ]
        self.optimisers = [
            torch.optim.Adam(itertools.chain(*layers), lr=config.learning_rate, fused=True)
            for layers in self._members
        ]

    def update_statistics(self, observations: Tensor, actions: Tensor) -> None:
        self.observation.update(observations)
        self.action.update(actions)

    def fit(
        self, observations: Tensor, actions: Tensor, next_observations: Tensor, member: int
    ) -> float:
        """Do one optimiser step of one member and return its loss (Eq. 4)."""
        inputs = torch.cat((self.observation(observations), self.action(actions)), -1)
        target = (next_observations - observations) / self.observation.std
        difference = _forward(self._members[member], inputs, torch.addmm) - target
        if self._config.loss == 'absolute':
            loss = difference.abs().mean()
        else:
            loss = difference.square().sum(-1).mean()
        optimiser = self.optimisers[member]
        gradients = torch.autograd.grad(loss, optimiser.param_groups[0]['params'])
        if self._config.gradient_limit:
            _clip_norms(gradients, self._config.gradient_limit)
        optimise(optimiser, gradients)
        return float(loss.detach())

    @torch.no_grad()
    def step(self, observations: Tensor, actions: Tensor) -> Tensor:
        """Return the predicted next observations (B, n), the mean of the ensemble."""
        inputs = torch.cat((self.observation(observations), self.action(actions)), -1)
        inputs = inputs.expand(self._config.members, *inputs.shape)
        change = _forward(self._layers, inputs, torch.baddbmm).mean(0)
        return observations + change * self.observation.std

    def errors(self, observations: np.ndarray, actions: np.ndarray) -> list[float]:
        """Return the mean absolute error after 1 to h steps, in standard deviations of s."""
        real = torch.from_numpy(observations)
        state = real[0]
        errors = []
        for index, action in enumerate(torch.from_numpy(actions)):
            state = self.step(state, action)
            errors.append(float(((state - real[index + 1]) / self.observation.std).abs().mean()))
        return errors


def _forward(
    layers: Sequence[tuple[Tensor, ...]], hidden: Tensor, multiply: Callable[..., Tensor]
) -> Tensor:
    *inner, (last_weight, last_bias) = layers
    for weight, bias in inner:
        hidden = multiply(bias, hidden, weight).relu_()
    return multiply(last_bias, hidden, last_weight)


def _clip_norms(gradients: tuple[Tensor, ...], limit: float) -> None:
    """Clip the norm of each tensor to ``limit``."""
    # Three calls for all tensors: a gradient step takes a third less time than with a loop over
    # ``clip_grad_norm_``.
    norms = torch.stack(torch._foreach_norm(gradients))
    scales = (limit / (norms + 1e-6)).clamp_max(1.0)
    torch._foreach_mul_(gradients, scales.unbind())


@dataclasses.dataclass(frozen=True)
class ModelRollouts:
    """Rollouts of a policy in the model; ``noise`` is the standard deviation on actions."""

    dynamics: Dynamics
    policy: Callable[[Tensor, Tensor], Tensor]
    interface: TaskInterface
    noise: float = 0.0

    @torch.no_grad()
    def run(
        self, observations: Tensor, goals: Tensor, steps: int, rng: Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return states (steps + 1, B, n) and actions (steps, B, k); noise only with ``rng``."""
        states, actions = [observations], []
        for _ in range(steps):
            noise = None if rng is None else self.sample_noise(1, len(goals), rng)
            action, state = self._step(states[-1], goals, None if noise is None else noise[0])
            actions.append(action)
            states.append(state)
        return torch.stack(states), torch.stack(actions) if actions else observations.new_empty(0)

    @torch.no_grad()
    def final_states(
        self,
        observations: Tensor,
        goals: Tensor,
        lengths: NDArray[np.int64],
        noise: Tensor | None = None,
    ) -> Tensor:
        """Return the last states (B, n) of rollouts of ``lengths`` (B,) steps each."""
        # Each row is computed only for its length. ``noise`` (steps, B, k) is added to actions.
        longest_first = np.argsort(-lengths, kind='stable')
        states, goals = observations[longest_first], goals[longest_first]
        for step in range(lengths.max(initial=0)):
            left = int((lengths > step).sum())
            added = None if noise is None else noise[step, longest_first[:left]]
            _, states[:left] = self._step(states[:left], goals[:left], added)
        return states[np.argsort(longest_first)]

    def sample_noise(self, steps: int, rows: int, rng: Generator) -> Tensor | None:
        """Sample noise on actions (steps, rows, k); None without noise."""
        if not self.noise:
            return None
        shape = steps, rows, len(self.interface.action)
        return self.noise * torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))

    def _step(self, states: Tensor, goals: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        action = self.policy(states, goals)
        if noise is not None:
            action = (action + noise).clamp(-1.0, 1.0)
        # Entries of the observation that repeat the goal are set, not predicted.
        predicted = self.dynamics.step(states, action)
        return action, self.interface.with_goal(predicted, goals)
