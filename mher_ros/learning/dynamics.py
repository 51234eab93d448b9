"""The learned dynamics: an ensemble of networks that behaves like an environment."""

from __future__ import annotations

from mher_ros.learning.config import ModelConfig
from mher_ros.learning.normaliser import Normaliser
import numpy as np
import torch
from torch import nn, Tensor

__all__ = ['Dynamics']


class Dynamics(nn.Module):
    r"""
    Predicts the change of the normalised observation from observation and action.

    .. math:: s_{t+1} = s_t + \sigma \odot m(s_t, a_t)

    The weights of all members lie in one tensor a layer, so a prediction is one batched call;
    each member's optimiser works on its own slice of them.
    """

    def __init__(
        self, observation: int, action: int, config: ModelConfig, rng: torch.Generator
    ) -> None:
        super().__init__()
        self._config = config
        self.observation = Normaliser(observation)
        self.action = Normaliser(action)
        sizes = (observation + action, *config.hidden, observation)
        self._weights: list[Tensor] = []
        self._biases: list[Tensor] = []
        for index, (inputs, outputs) in enumerate(zip(sizes, sizes[1:], strict=False)):
            weight = torch.empty(config.members, inputs, outputs)
            for member in weight:
                nn.init.xavier_uniform_(member, generator=rng)
            bias = torch.zeros(config.members, 1, outputs)
            self.register_buffer(f'weight{index}', weight)
            self.register_buffer(f'bias{index}', bias)
            self._weights.append(weight)
            self._biases.append(bias)
        self._members = [
            [
                (weight[member].requires_grad_(), bias[member].requires_grad_())
                for weight, bias in zip(
                    (w.detach() for w in self._weights),
                    (b.detach() for b in self._biases),
                    strict=True,
                )
            ]
            for member in range(config.members)
        ]
        self.optimisers = [
            torch.optim.Adam(
                [tensor for layer in member for tensor in layer],
                lr=config.learning_rate,
                fused=True,
            )
            for member in self._members
        ]

    def see(self, observations: Tensor, actions: Tensor) -> None:
        """Take a batch into the running statistics."""
        self.observation.update(observations)
        self.action.update(actions)

    def fit(
        self, observations: Tensor, actions: Tensor, next_observations: Tensor, member: int
    ) -> float:
        """Do one optimiser step of one member and return its loss (Eq. 4)."""
        inputs = torch.cat((self.observation(observations), self.action(actions)), -1)
        target = (next_observations - observations) / self.observation.std
        layers = self._members[member]
        predicted = inputs
        for index, (weight, bias) in enumerate(layers):
            predicted = torch.addmm(bias, predicted, weight)
            if index + 1 < len(layers):
                predicted = predicted.relu()
        difference = predicted - target
        loss = (
            difference.abs().mean()
            if self._config.loss == 'absolute'
            else (difference.square().sum(-1).mean())
        )
        optimiser = self.optimisers[member]
        parameters = optimiser.param_groups[0]['params']
        gradients = torch.autograd.grad(loss, parameters)
        if self._config.gradient_limit:
            _cut(gradients, self._config.gradient_limit)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()
        return float(loss.detach())

    @torch.no_grad()
    def step(self, observations: Tensor, actions: Tensor) -> Tensor:
        """Return predicted next observations (B, n): the members' mean."""
        observation = self.observation(observations)
        hidden = torch.cat((observation, self.action(actions)), -1)
        hidden = hidden.expand(self._config.members, *hidden.shape)
        last = len(self._weights) - 1
        for index, (weight, bias) in enumerate(zip(self._weights, self._biases, strict=True)):
            hidden = torch.baddbmm(bias, hidden, weight)
            if index < last:
                hidden = hidden.relu_()
        return observations + hidden.mean(0) * self.observation.std

    def errors(self, observations: np.ndarray, actions: np.ndarray) -> list[float]:
        """Return the mean absolute error after 1..h steps, in standard deviations of s."""
        real = torch.from_numpy(observations)
        state = real[0]
        errors = []
        for index, action in enumerate(torch.from_numpy(actions)):
            state = self.step(state, action)
            errors.append(float(((state - real[index + 1]) / self.observation.std).abs().mean()))
        return errors


def _cut(gradients: tuple[Tensor, ...], limit: float) -> None:
    """
    Scale each tensor that is longer than ``limit`` down to it.

    What ``clip_grad_norm_`` does to all tensors together it would have to do to each of these in
    turn; these three calls take a third off a model step at batch 64 (docs/benchmarks.md).
    """
    norms = torch.stack(torch._foreach_norm(gradients))
    scales = (limit / (norms + 1e-6)).clamp_max(1.0)
    torch._foreach_mul_(gradients, scales.unbind())
