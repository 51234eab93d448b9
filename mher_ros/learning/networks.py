"""Actor, critic and what both see of a state and a goal."""

from __future__ import annotations

from mher_ros.interface import TaskInterface
from mher_ros.learning.normaliser import Normaliser
import torch
from torch import nn, Tensor

__all__ = ['Actor', 'Critic', 'Policy', 'View', 'mlp']

RAW_LIMIT = 200.0
"""Observations and goals are cut here before anything else."""
NORMALISED_LIMIT = 5.0


class View(nn.Module):
    """
    Normalised observation and goal, side by side.

    With ``relative`` the way from the achieved to the desired goal, normalised too, stands
    beside them: the network need not learn to subtract.
    """

    def __init__(self, interface: TaskInterface, relative: bool) -> None:
        super().__init__()
        self._interface, self._relative = interface, relative
        n, m = len(interface.observation), len(interface.goal)
        self.observation = Normaliser(n, clip=NORMALISED_LIMIT)
        self.goal = Normaliser(m, clip=NORMALISED_LIMIT)
        self.way = Normaliser(m, clip=NORMALISED_LIMIT)
        self.size = n + m + (m if relative else 0)

    def forward(self, observation: Tensor, goal: Tensor) -> Tensor:
        """Return features (B, size) of raw observations (B, n) and goals (B, m)."""
        observation = observation.clamp(-RAW_LIMIT, RAW_LIMIT)
        goal = goal.clamp(-RAW_LIMIT, RAW_LIMIT)
        parts = [self.observation(observation), self.goal(goal)]
        if self._relative:
            parts.append(self.way(goal - self._interface.achieved_goal(observation)))
        return torch.cat(parts, -1)

    def update(self, observation: Tensor, goal: Tensor) -> None:
        """Take a batch into the running statistics."""
        observation = observation.clamp(-RAW_LIMIT, RAW_LIMIT)
        goal = goal.clamp(-RAW_LIMIT, RAW_LIMIT)
        self.observation.update(observation)
        self.goal.update(goal)
        self.way.update(goal - self._interface.achieved_goal(observation))


class Actor(nn.Module):
    """Features to an action in [-1, 1]^k."""

    def __init__(self, features: int, action: int, hidden: tuple[int, ...], rng: torch.Generator):
        super().__init__()
        self.layers = mlp((features, *hidden, action), rng)

    def forward(self, features: Tensor) -> Tensor:
        """Return actions (B, k)."""
        return torch.tanh(self.layers(features))


class Critic(nn.Module):
    """Features and action to a value."""

    def __init__(self, features: int, action: int, hidden: tuple[int, ...], rng: torch.Generator):
        super().__init__()
        self.layers = mlp((features + action, *hidden, 1), rng)

    def forward(self, features: Tensor, action: Tensor) -> Tensor:
        """Return values (B,)."""
        value: Tensor = self.layers(torch.cat((features, action), -1)).squeeze(-1)
        return value


class Policy(nn.Module):
    """Raw observation and goal to action: the graph that is deployed."""

    def __init__(self, view: View, actor: Actor) -> None:
        super().__init__()
        self.view, self.actor = view, actor

    def forward(self, observation: Tensor, desired_goal: Tensor) -> Tensor:
        """Return actions (B, k) for observations (B, n) and goals (B, m)."""
        action: Tensor = self.actor(self.view(observation, desired_goal))
        return action


def mlp(sizes: tuple[int, ...], rng: torch.Generator) -> nn.Sequential:
    """Return linear layers with ReLU between, Xavier-uniform weights and zero biases."""
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(linear.weight, generator=rng)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
