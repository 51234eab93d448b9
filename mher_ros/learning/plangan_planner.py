"""Planning by imagination: which first action leads to the goal soonest and keeps it."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses

from mher_ros.learning.dynamics import Dynamics
from mher_ros.learning.plangan_config import PlanConfig
from mher_ros.learning.plangan_networks import Generators, Space
import numpy as np
import torch
from torch import Tensor

__all__ = ['Chances', 'Planner', 'best_action', 'weighted_action']

ROWS_AT_ONCE = 5000
"""Imagined states that are moved together: more do not fit the processor's cache."""


@dataclasses.dataclass(frozen=True)
class Chances:
    """
    All that is random in a plan.

    Every first action and every state planned for shares them, so first actions are compared
    under the same luck, and most of the random numbers need not be drawn.
    """

    first_latent: Tensor
    """(Q, l)"""
    latent: Tensor
    """(T - 1, R, l)"""
    order: Tensor
    """(T - 1, R): the order in which trajectories are dealt to the generators at each step."""

    @classmethod
    def draw(cls, config: PlanConfig, rng: np.random.Generator) -> Chances:
        """Draw what one call of ``plan`` needs."""
        steps, trajectories = config.steps - 1, config.trajectories

        def normal(*shape: int) -> Tensor:
            return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))

        order = rng.permuted(np.tile(np.arange(trajectories), (steps, 1)), axis=1)
        return cls(
            normal(config.first_actions, config.latent),
            normal(steps, trajectories, config.latent),
            torch.from_numpy(order),
        )


class Planner:
    r"""
    Proposes Q first actions and imagines R trajectories of T steps after each.

    The score of a first action is the share of imagined time at the goal,

    .. math:: \frac{1}{R T} \sum_{r=1}^R \sum_{t=1}^T [\, |\phi(s_t^r) - g| \le \epsilon \,]

    where :math:`s_1` is where the model says the first action leads. Each later action comes from
    a generator picked at random.
    """

    def __init__(
        self,
        space: Space,
        generators: Generators,
        dynamics: Dynamics,
        config: PlanConfig,
        interrupt: Callable[[], None] = lambda: None,
    ) -> None:
        """``interrupt`` is called before each imagined step, and may raise: a plan takes time."""
        self._space, self._generators, self._dynamics = space, generators, dynamics
        self._config, self._interrupt = config, interrupt

    @torch.inference_mode()
    def plan(self, observations: Tensor, goals: Tensor, chances: Chances) -> Tensor:
        """Return actions (B, k) for observations (B, n) and goals (B, m)."""
        config = self._config
        first = self.propose(observations, goals, chances)
        if config.first_actions == 1:
            return first[0]
        rows = config.first_actions * config.trajectories
        together = max(1, ROWS_AT_ONCE // rows)
        scores = torch.cat(
            [
                self.score(observations[part], goals[part], first[:, part], chances)
                for part in (
                    slice(start, start + together)
                    for start in range(0, len(observations), together)
                )
            ],
            1,
        )
        if config.choice == 'best':
            return best_action(first, scores)
        return weighted_action(first, scores, config.sharpness)

    @torch.inference_mode()
    def propose(self, observations: Tensor, goals: Tensor, chances: Chances) -> Tensor:
        """Return first actions (Q, B, k), as many from each generator as may be."""
        features = self._space.features(observations, goals)
        states = features.expand(self._config.first_actions, *features.shape)
        return self._imagine(states, chances.first_latent)[0]

    @torch.inference_mode()
    def score(
        self, observations: Tensor, goals: Tensor, first_actions: Tensor, chances: Chances
    ) -> Tensor:
        """Return the share (Q, B) of imagined time at the goals (B, m)."""
        config, space = self._config, self._space
        shape = first_actions.shape[:2]
        goals = goals.expand(*shape, -1).flatten(0, 1)
        states = self._model(
            observations.expand(*shape, -1).flatten(0, 1), first_actions.flatten(0, 1), goals
        )
        time_at_goal = self._at_goal(states, goals) * config.trajectories
        states = states.expand(config.trajectories, *states.shape)
        for latent, order in zip(chances.latent, chances.order, strict=True):
            self._interrupt()
            # Only how many are at the goal counts, so no trajectory need return to its place.
            states = states[order]
            actions, changes = self._imagine(space.features(states, goals), latent)
            if config.next_state == 'model':
                states = self._model(states, actions, goals)
            else:
                states = space.moved(states, changes, goals)
            time_at_goal += self._at_goal(states, goals).sum(0)
        return time_at_goal.view(shape) / (config.trajectories * config.steps)

    def _imagine(self, features: Tensor, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Deal rows (C, M, f), with their latents (C, l), to the generators; return (C, M, .)."""
        count, generators = len(latent), self._config.gans
        each = -(-count // generators)
        if each * generators > count:
            # Generators work in step: rows are repeated for those that would get one less.
            more = torch.arange(each * generators) % count
            features, latent = features[more], latent[more]
        actions, changes = self._generators(
            features.reshape(generators, each, *features.shape[1:]),
            latent.view(generators, each, -1),
        )
        return actions.flatten(0, 1)[:count], changes.flatten(0, 1)[:count]

    def _model(self, states: Tensor, actions: Tensor, goals: Tensor) -> Tensor:
        flat = self._dynamics.step(
            states.reshape(-1, states.shape[-1]), actions.reshape(-1, actions.shape[-1])
        )
        following: Tensor = self._space.interface.with_goal(flat.view(states.shape), goals)
        return following

    def _at_goal(self, states: Tensor, goals: Tensor) -> Tensor:
        interface = self._space.interface
        way = interface.achieved_goal(states) - goals
        return (way.square().sum(-1) <= interface.success_threshold**2).float()


def best_action(first_actions: Tensor, scores: Tensor) -> Tensor:
    """Return of the first actions (Q, B, k) the one (B, k) with the highest score (Q, B)."""
    return first_actions[scores.argmax(0), torch.arange(scores.shape[1])]


def weighted_action(first_actions: Tensor, scores: Tensor, sharpness: float) -> Tensor:
    r"""
    Return the mean (B, k) of first actions (Q, B, k), weighted by their scores (Q, B).

    .. math:: w_q \propto \exp(\alpha\, (R_q - \bar R) / \sigma_R)
    """
    spread = scores.std(0, correction=0) + 1e-4
    weights = torch.softmax(sharpness * (scores - scores.mean(0)) / spread, 0)
    return (weights[..., None] * first_actions).sum(0)
