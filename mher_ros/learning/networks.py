"""Actor, critic and what both see of a state and a goal."""

from __future__ import annotations

import dataclasses
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.learning.normaliser import Normaliser
from mher_ros.tasks.rollouts import PolicyFunction
import numpy as np
from numpy.typing import NDArray
import torch
from torch import nn, Tensor

__all__ = ['Actor', 'Critic', 'Networks', 'Policy', 'View', 'mlp', 'policy_function']

RAW_LIMIT = 200.0
"""Observations and goals are cut here before anything else."""
NORMALISED_LIMIT = 5.0
SLOWEST_WAVE = 1.5
"""Radians a standard deviation; each further wave has twice as many."""


class View(nn.Module):
    """
    Normalised observation and goal, side by side.

    With ``relative`` the way from the achieved to the desired goal, normalised too, stands
    beside them: the network need not learn to subtract. ``waves`` sines and cosines of each of
    these numbers follow, of 1.5, 3, 6, ... radians a standard deviation: what changes within a
    short way, as on the two sides of a wall, takes a network of ReLUs far more updates to learn
    from the numbers alone (Tancik et al. 2020).

    With ``workspace_units`` positions and goals are not normalised by what was seen, which is
    little at first and makes far places look extreme, but told in widths of the workspace from
    its middle: what matters is the way, and where the tool is moves a young network but little.
    """

    def __init__(
        self,
        interface: TaskInterface,
        relative: bool = False,
        hide_still: bool = False,
        waves: int = 0,
        workspace_units: bool = False,
    ) -> None:
        super().__init__()
        self._interface, self._relative, self._waves = interface, relative, waves
        n, m = len(interface.observation), len(interface.goal)
        self.observation = Normaliser(n, clip=NORMALISED_LIMIT, hide_still=hide_still)
        self.goal = Normaliser(m, clip=NORMALISED_LIMIT)
        self.way = Normaliser(m, clip=NORMALISED_LIMIT)
        if workspace_units:
            low, high = torch.tensor((interface.goal_low, interface.goal_high))
            middle, width = (low + high) / 2.0, high - low
            self.goal.pin(slice(0, m), middle, width)
            for index in filter(None, (interface.achieved_index, interface.goal_index)):
                self.observation.pin(slice(index[0], index[0] + m), middle, width)
        self.size = (n + m + (m if relative else 0)) * (1 + 2 * waves)

    def forward(self, observation: Tensor, goal: Tensor) -> Tensor:
        """Return features (B, size) of raw observations (B, n) and goals (B, m)."""
        observation = observation.clamp(-RAW_LIMIT, RAW_LIMIT)
        goal = goal.clamp(-RAW_LIMIT, RAW_LIMIT)
        parts = [self.observation(observation), self.goal(goal)]
        if self._relative:
            parts.append(self.way(goal - self._interface.achieved_goal(observation)))
        numbers = torch.cat(parts, -1)
        if not self._waves:
            return numbers
        angles = [SLOWEST_WAVE * 2.0**index * numbers for index in range(self._waves)]
        return torch.cat((numbers, *map(torch.sin, angles), *map(torch.cos, angles)), -1)

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


@dataclasses.dataclass(frozen=True)
class Networks:
    """What an agent learns, with the slowly moving copies that targets are made of."""

    view: View
    actor: Actor
    critic: Critic
    target_actor: Actor
    target_critic: Critic

    def target_action(self, observations: Tensor, goals: Tensor) -> Tensor:
        """Return the slow actor's actions (B, k)."""
        action: Tensor = self.target_actor(self.view(observations, goals))
        return action

    def modules(self) -> dict[str, nn.Module]:
        """Return every network by its name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @torch.no_grad()
    def move_targets(self, share: float) -> None:
        """Move the slow copies a ``share`` of the way to what they copy."""
        for target, network in (
            (self.target_actor, self.actor),
            (self.target_critic, self.critic),
        ):
            torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), share)


def mlp(sizes: tuple[int, ...], rng: torch.Generator) -> nn.Sequential:
    """Return linear layers with ReLU between, Xavier-uniform weights and zero biases."""
    layers: list[nn.Module] = []
    for inputs, outputs in zip(sizes, sizes[1:], strict=False):
        linear = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(linear.weight, generator=rng)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def policy_function(policy: Policy) -> PolicyFunction:
    """Return the network as a function of arrays."""

    @torch.inference_mode()
    def act(observations: NDArray[Any], goals: NDArray[Any]) -> NDArray[np.float32]:
        actions: NDArray[np.float32] = policy(
            torch.from_numpy(observations.astype(np.float32)),
            torch.from_numpy(goals.astype(np.float32)),
        ).numpy()
        return actions

    return act
