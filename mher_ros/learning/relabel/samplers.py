"""Samplers of training batches: which transitions, with which goals."""

import dataclasses

from mher_ros.interface import TaskInterface
from mher_ros.learning.config import RngStream
from mher_ros.learning.core.networks import InputEncoder
from mher_ros.learning.core.replay_buffer import (
    EpisodeReplay,
    Floats,
    ModelReplay,
    ModelTransitions,
    Transitions,
)
from mher_ros.learning.model import ModelRollouts
from mher_ros.learning.relabel.strategies import GoalStrategy, relabel
from mher_ros.tasks.task import Array
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import rankdata
import torch
from torch import Tensor

CANDIDATES_PER_PICK = 3  # curriculum: stochastic greedy selection compares this many at a time
COMPONENTS = 3  # Gaussians of the mixture
EM_ITERATIONS = 25
MIN_VARIANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class Batch:
    """B transitions with their goals, new or original."""

    observations: Tensor  # (B, n); entries that repeat the goal are set to ``goals``
    actions: Tensor
    next_observations: Tensor
    goals: Tensor
    rewards: Tensor  # (B,), for ``goals``
    threshold_factor: float  # factor of the success threshold of ``rewards``
    relabelled: Tensor  # (B,), 1 for rows with a new goal
    features: Tensor  # (B, f), network inputs for ``observations`` and ``goals``


@dataclasses.dataclass(kw_only=True)
class BatchSampler:
    """Uniform transitions, a fraction ``probability`` of them with new goals of ``source``."""

    replay: EpisodeReplay
    encoder: InputEncoder
    interface: TaskInterface
    source: GoalStrategy | None
    probability: float
    size: int
    goal_offsets: Floats | None = dataclasses.field(default=None, init=False)
    """New minus original goals of the last batch (k, m); None if none was relabelled."""
    threshold_factor: float = dataclasses.field(default=1.0, init=False)
    """Factor of the success threshold of rewards."""

    def sample(self, rng: Generator) -> Transitions:
        return self.replay.sample(self.size, rng)

    def relabel(self, transitions: Transitions, updates: int, rng: Generator) -> Batch:
        """Return the training batch for the update number ``updates``."""
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        self._set_offsets(transitions.goals, goals, mask)
        return self._batch(transitions, goals, mask)

    def original(self, transitions: Transitions) -> Batch:
        return self._batch(transitions, transitions.goals, np.zeros(len(transitions.goals)))

    def _set_offsets(self, original: Floats, goals: Floats, mask: NDArray[np.bool_]) -> None:
        self.goal_offsets = goals[mask] - original[mask] if mask.any() else None

    def _batch(self, rows: ModelTransitions, goals: Floats, mask: NDArray[np.generic]) -> Batch:
        interface, new_goals = self.interface, torch.from_numpy(goals)
        achieved = interface.achieved_goal(rows.next_observations)
        observations = torch.from_numpy(interface.with_goal(rows.observations, goals))
        following = torch.from_numpy(interface.with_goal(rows.next_observations, goals))
        return Batch(
            observations=observations,
            actions=torch.from_numpy(rows.actions),
            next_observations=following,
            goals=new_goals,
            rewards=torch.from_numpy(interface.reward(achieved, goals, self.threshold_factor)),
            threshold_factor=self.threshold_factor,
            relabelled=torch.from_numpy(mask.astype(np.float32)),
            features=self.encoder(observations, new_goals),
        )


@dataclasses.dataclass(kw_only=True)
class CurriculumSampler(BatchSampler):
    """Transitions that a curriculum selects from ``candidates`` times as many."""

    curriculum: 'GoalCurriculum'
    candidates: int

    def sample(self, rng: Generator) -> Transitions:
        return self.replay.sample(self.candidates * self.size, rng)

    def relabel(self, transitions: Transitions, updates: int, rng: Generator) -> Batch:
        # The curriculum selects relabelled rows, as many as a batch has on average. The other
        # rows keep their original goals and are chosen at random.
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        new, old = np.flatnonzero(mask), np.flatnonzero(~mask)
        wanted = max(round(self.probability * self.size), self.size - len(old))
        count = min(wanted, len(new))
        distances = self.interface.distance(goals[new], transitions.goals[new])
        picked = self.curriculum.choose(goals[new], distances, count, updates, rng)
        rest = rng.choice(old, size=self.size - count, replace=False)
        rows = np.concatenate((new[picked], rest))
        self._set_offsets(transitions.goals[rows], goals[rows], mask[rows])
        return self._batch(transitions.rows(rows), goals[rows], mask[rows])


@dataclasses.dataclass(kw_only=True)
class RareEpisodeSampler(BatchSampler):
    """Transitions of episodes with rare trajectories with a higher probability."""

    seed: int
    _weighed: int = dataclasses.field(default=-1, init=False)
    _weights: Array | None = dataclasses.field(default=None, init=False)

    def sample(self, rng: Generator) -> Transitions:
        stored = self.replay.episodes_stored
        if stored != self._weighed:
            # A separate generator: a resumed run computes the same weights.
            fit = np.random.default_rng([self.seed, RngStream.RARITY, stored])
            self._weights = rarity_weights(self.replay.achieved_paths(self.interface), fit)
            self._weighed = stored
        return self.replay.sample(self.size, rng, self._weights)


@dataclasses.dataclass(kw_only=True)
class ModelSampler(BatchSampler):
    """Only transitions that the model predicted (Janner et al. 2019)."""

    rollouts: ModelRollouts
    steps: int
    model_replay: ModelReplay

    def relabel(self, transitions: Transitions, updates: int, rng: Generator) -> Batch:
        """Add rollouts from the real states to the model replay buffer and sample from it."""
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        self._set_offsets(transitions.goals, goals, mask)
        start = torch.from_numpy(self.interface.with_goal(transitions.observations, goals))
        states, actions = self.rollouts.run(start, torch.from_numpy(goals), self.steps, rng)
        parts = [part.flatten(0, 1).numpy() for part in (states[:-1], actions, states[1:])]
        parts.append(np.tile(goals, (self.steps, 1)))
        self.model_replay.add(ModelTransitions(*parts))
        predicted = self.model_replay.sample(self.size, rng)
        return self._batch(predicted, predicted.goals, np.zeros(self.size))


class GoalCurriculum:
    r"""
    Selects diverse goals early and goals close to the desired ones later (Fang et al. 2019).

    From candidates with new goals :math:`g'_i` and desired goals :math:`g_i` it selects greedily
    a subset A with a large value of

    .. math:: F(A) = \sum_j \max_{i \in A} e^{-\|g'_i - g'_j\|^2 / \sigma^2}
              - \lambda \sum_{i \in A} \|g'_i - g_i\|

    :math:`\sigma` is the mean distance of a candidate to its nearest neighbour; :math:`\lambda` is
    ``weight`` at first and grows by the factor ``1 + growth`` per update.
    """

    def __init__(self, weight: float, growth: float) -> None:
        self._weight, self._growth = weight, growth

    def choose(
        self,
        goals: Floats,
        distances: NDArray[np.floating],
        count: int,
        updates: int,
        rng: Generator,
    ) -> NDArray[np.int64]:
        """
        Return ``count`` different row indices of ``goals`` (N, m).

        ``distances`` (N,): from the desired goals.
        """
        similar = _similarities(goals)
        cost = self.weight(updates) * distances
        covered = np.zeros(len(goals))
        left = list(range(len(goals)))
        picked = []
        for _ in range(count):
            places = rng.choice(len(left), size=min(CANDIDATES_PER_PICK, len(left)), replace=False)
            tried = [left[place] for place in places]
            gains = np.maximum(similar[tried] - covered, 0.0).sum(-1) - cost[tried]
            best = int(np.argmax(gains))
            covered = np.maximum(covered, similar[tried[best]])
            picked.append(tried[best])
            left.pop(places[best])
        return np.array(picked, np.int64)

    def weight(self, updates: int) -> float:
        r"""Return :math:`\lambda` after ``updates`` updates."""
        return self._weight * (1.0 + self._growth) ** updates


def _similarities(goals: Floats) -> Array:
    distances = cdist(goals, goals)
    to_others = distances + np.where(np.eye(len(goals), dtype=bool), np.inf, 0.0)
    width = to_others.min(0).mean() if len(goals) > 1 else 0.0
    return np.exp(-np.square(distances / width)) if width else (distances == 0.0) * 1.0


def rarity_weights(paths: NDArray[np.floating], rng: Generator) -> Array:
    """Return sampling probabilities (E,) by rarity of ``paths`` (E, T, m) (Zhao et al. 2019)."""
    # The probability is proportional to the rank by density under a Gaussian mixture, 0 for the
    # most common path. Equal densities have equal ranks.
    flat = paths.reshape(len(paths), -1).astype(np.float64)
    density = GaussianMixture(flat, COMPONENTS, rng).log_density(flat)
    ranks = rankdata(-density, method='dense') - 1.0
    return ranks / ranks.sum() if ranks.any() else np.full(len(ranks), 1.0 / len(ranks))


class GaussianMixture:
    """Gaussian mixture with diagonal covariances, fitted by expectation-maximisation."""

    def __init__(self, values: Array, components: int, rng: Generator) -> None:
        count = min(components, len(values))
        self._means = values[rng.choice(len(values), size=count, replace=False)]
        self._overall = np.maximum(values.var(0), MIN_VARIANCE)
        self._variances = np.tile(self._overall, (count, 1))
        self._shares = np.full(count, 1.0 / count)
        for _ in range(EM_ITERATIONS):
            self._iterate(values)

    def log_density(self, values: Array) -> Array:
        """Return the log density (N,) at values (N, d)."""
        return logsumexp(self._log_parts(values), axis=-1)

    def _iterate(self, values: Array) -> None:
        # With few values in many dimensions, a Gaussian could shrink to a single value, which
        # would then have the highest density. Therefore variances are shrunk to the variance of
        # all values (weight: d values), and a Gaussian with fewer than two values is removed.
        parts = self._log_parts(values)
        belongs = np.exp(parts - logsumexp(parts, axis=-1, keepdims=True))
        weight = belongs.sum(0)
        kept = weight >= min(2.0, weight.max())
        belongs, weight = belongs[:, kept], weight[kept]
        self._shares = weight / weight.sum()
        self._means = belongs.T @ values / weight[:, None]
        spread = belongs.T @ values**2 / weight[:, None] - self._means**2
        share = (weight / (weight + values.shape[1]))[:, None]
        self._variances = np.maximum(share * spread + (1.0 - share) * self._overall, MIN_VARIANCE)

    def _log_parts(self, values: Array) -> Array:
        """Return the log density of each component, weighted, as (N, components)."""
        exponent = ((values[:, None] - self._means) ** 2 / self._variances).sum(-1)
        width = np.log(2.0 * np.pi * self._variances).sum(-1)
        return np.log(self._shares) - 0.5 * (exponent + width)
