"""From the replay to what the networks learn from: which rows, under which goals."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

from mher_ros.interface import TaskInterface
from mher_ros.learning import streams
from mher_ros.learning.batch import Batch
from mher_ros.learning.curriculum import GoalCurriculum
from mher_ros.learning.imagination import Imagination
from mher_ros.learning.model_replay import ImaginedTransitions, ModelReplay
from mher_ros.learning.networks import View
from mher_ros.learning.rarity import rarity_weights
from mher_ros.learning.relabel import GoalSource, relabel
from mher_ros.learning.replay import EpisodeReplay, Transitions
import numpy as np
from numpy.typing import NDArray
import torch

__all__ = ['Batches', 'CuratedBatches', 'ImaginedBatches', 'RareEpisodeBatches']


class _Relabelled(NamedTuple):
    """Goals (B, m) of a batch, those before, and the mask (B,) of rows that got a new one."""

    goals: NDArray[np.float32]
    own_goals: NDArray[np.float32]
    mask: NDArray[np.bool_]


@dataclasses.dataclass(kw_only=True)
class Batches:
    """Uniform transitions, a share of them with goals of ``source``."""

    replay: EpisodeReplay
    view: View
    interface: TaskInterface
    source: GoalSource | None
    probability: float
    size: int
    _last: _Relabelled | None = dataclasses.field(default=None, init=False)

    @property
    def made_offsets(self) -> NDArray[np.float32] | None:
        """From the goals of rows of the last batch to new ones (k, m); None if none got one."""
        last = self._last
        if last is None or not last.mask.any():
            return None
        return last.goals[last.mask] - last.own_goals[last.mask]

    def draw(self, rng: np.random.Generator) -> Transitions:
        """Return real transitions under their original goals."""
        return self.replay.sample(self.size, rng)

    def relabelled(
        self, transitions: Transitions, updates: int, rng: np.random.Generator
    ) -> Batch:
        """Return what to learn from ``transitions`` after ``updates`` updates."""
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        self._last = _Relabelled(goals, transitions.goals, mask)
        return self._batch(transitions, goals, mask)

    def original(self, transitions: Transitions) -> Batch:
        """Return the transitions with the goals they were collected under."""
        return self._batch(transitions, transitions.goals, np.zeros(len(transitions.goals)))

    def _batch(
        self,
        transitions: Transitions | ImaginedTransitions,
        goals: NDArray[np.float32],
        mask: NDArray[np.generic],
    ) -> Batch:
        interface = self.interface
        achieved = interface.achieved_goal(transitions.next_observations)
        observations = torch.from_numpy(interface.with_goal(transitions.observations, goals))
        following = torch.from_numpy(interface.with_goal(transitions.next_observations, goals))
        return Batch(
            observations=observations,
            actions=torch.from_numpy(transitions.actions),
            next_observations=following,
            goals=torch.from_numpy(goals),
            rewards=torch.from_numpy(interface.reward(achieved, goals)),
            relabelled=torch.from_numpy(mask.astype(np.float32)),
            features=self.view(observations, torch.from_numpy(goals)),
        )


@dataclasses.dataclass(kw_only=True)
class CuratedBatches(Batches):
    """
    Those of more candidates that a curriculum picks.

    It picks among relabelled rows, as many as a batch has on average; the others are rows under
    their own goals, which no curriculum can bring closer to them.
    """

    curriculum: GoalCurriculum
    candidates: int

    def draw(self, rng: np.random.Generator) -> Transitions:
        """Return the candidates."""
        return self.replay.sample(self.candidates * self.size, rng)

    def relabelled(
        self, transitions: Transitions, updates: int, rng: np.random.Generator
    ) -> Batch:
        """Return the candidates that were picked."""
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        new, old = np.flatnonzero(mask), np.flatnonzero(~mask)
        wanted = max(round(self.probability * self.size), self.size - len(old))
        count = min(wanted, len(new))
        picked = self.curriculum.choose(goals[new], transitions.goals[new], count, updates, rng)
        rest = rng.choice(old, size=self.size - count, replace=False)
        rows = np.concatenate((new[picked], rest))
        self._last = _Relabelled(goals[rows], transitions.goals[rows], mask[rows])
        return self._batch(transitions.rows(rows), goals[rows], mask[rows])


@dataclasses.dataclass(kw_only=True)
class RareEpisodeBatches(Batches):
    """Transitions of episodes whose paths are rare more often than of common ones."""

    seed: int
    _weighed: int = dataclasses.field(default=-1, init=False)
    _weights: NDArray[np.float64] | None = dataclasses.field(default=None, init=False)

    def draw(self, rng: np.random.Generator) -> Transitions:
        """Return real transitions, episodes weighed anew whenever one has been stored."""
        stored = self.replay.episodes_stored
        if stored != self._weighed:
            # A generator of its own: a run that goes on weighs its episodes the same way.
            fit = np.random.default_rng([self.seed, streams.RARITY, stored])
            self._weights = rarity_weights(self.replay.achieved_paths(self.interface), fit)
            self._weighed = stored
        return self.replay.sample(self.size, rng, self._weights)


@dataclasses.dataclass(kw_only=True)
class ImaginedBatches(Batches):
    """
    Transitions of the model alone (Janner et al. 2019).

    Rollouts of ``steps`` steps branch off the real states :math:`s_t`, under the goals that the
    batch was relabelled with.
    """

    imagination: Imagination
    steps: int
    model_replay: ModelReplay

    def relabelled(
        self, transitions: Transitions, updates: int, rng: np.random.Generator
    ) -> Batch:
        """Imagine what follows the transitions' states, then learn from any of the replay."""
        goals, mask = relabel(transitions, self.source, self.probability, rng)
        self._last = _Relabelled(goals, transitions.goals, mask)
        start = torch.from_numpy(self.interface.with_goal(transitions.observations, goals))
        states, actions = self.imagination.run(start, torch.from_numpy(goals), self.steps, rng)
        made = [part.flatten(0, 1).numpy() for part in (states[:-1], actions, states[1:])]
        under = np.tile(goals, (self.steps, 1))
        self.model_replay.add(ImaginedTransitions(made[0], made[1], made[2], under))
        imagined = self.model_replay.sample(self.size, rng)
        return self._batch(imagined, imagined.goals, np.zeros(self.size))
