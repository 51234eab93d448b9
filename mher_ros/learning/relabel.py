"""Which goals a transition is learnt with, other than the one it was collected under."""

from __future__ import annotations

import abc
import dataclasses

from mher_ros.interface import TaskInterface
from mher_ros.learning.replay import EpisodeReplay, Transitions
import numpy as np
from numpy.typing import NDArray

__all__ = [
    'FutureGoals',
    'GoalSource',
    'head_for',
    'MixedGoals',
    'NoisyGoals',
    'RandomGoals',
    'relabel',
    'Rows',
    'SeenGoals',
]


Rows = NDArray[np.bool_] | None
"""A mask (B,); None: all."""


class GoalSource(abc.ABC):
    """Proposes a goal for each transition of a batch."""

    @abc.abstractmethod
    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """
        Return goals (B, m); those of rows that are not ``wanted`` (B,) may be anything.

        Chance is drawn for all rows alike, so that it does not hang on what is wanted.
        """


class FutureGoals(GoalSource):
    """Goals achieved later in the same episode (Andrychowicz et al. 2017)."""

    def __init__(self, replay: EpisodeReplay, interface: TaskInterface) -> None:
        self._replay, self._interface = replay, interface

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return a goal from t + 1 to the end, uniformly."""
        goals: NDArray[np.float32] = self._interface.achieved_goal(
            self._replay.sample_future(batch, rng)
        )
        return goals


class SeenGoals(GoalSource):
    """Goals achieved anywhere in the replay, in reach or not."""

    def __init__(self, replay: EpisodeReplay, interface: TaskInterface) -> None:
        self._replay, self._interface = replay, interface

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return the goals achieved by transitions drawn anew."""
        seen = self._replay.sample(len(batch.steps), rng)
        goals: NDArray[np.float32] = self._interface.achieved_goal(seen.next_observations)
        return goals


class MixedGoals(GoalSource):
    """Each row from the first source with a given probability, else from the second."""

    def __init__(self, first: GoalSource, second: GoalSource, share: float) -> None:
        self._first, self._second, self._share = first, second, share

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return goals of both sources, row by row."""
        pick = rng.random(len(batch.steps)) < self._share
        # The second source is asked for all: what it does not need to do costs it nothing.
        first = self._first.propose(batch, rng, pick if wanted is None else pick & wanted)
        return np.where(pick[:, None], first, self._second.propose(batch, rng, wanted))


class RandomGoals(GoalSource):
    """Goals drawn uniformly from the box that holds the task's goals."""

    def __init__(self, interface: TaskInterface) -> None:
        self._low = np.array(interface.goal_low, np.float32)
        self._high = np.array(interface.goal_high, np.float32)

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return goals that have nothing to do with the transitions."""
        share = rng.random(batch.goals.shape, dtype=np.float32)
        return self._low + share * (self._high - self._low)


class NoisyGoals(GoalSource):
    """Another source's goals, each entry with Gaussian noise on it."""

    def __init__(self, source: GoalSource, deviation: float) -> None:
        self._source, self._deviation = source, np.float32(deviation)

    def propose(
        self, batch: Transitions, rng: np.random.Generator, wanted: Rows = None
    ) -> NDArray[np.float32]:
        """Return goals near those of the source."""
        goals = self._source.propose(batch, rng, wanted)
        return goals + self._deviation * rng.standard_normal(goals.shape, dtype=np.float32)


def head_for(
    batch: Transitions, source: GoalSource, share: float, rng: np.random.Generator
) -> Transitions:
    """
    Return the batch as if a share of its rows had been collected under goals of ``source``.

    Unlike relabelled rows these may lead away from their goal: they teach the critic what is far,
    model rollouts head for their goals, and no loss takes their actions for an example.
    """
    if not share:
        return batch
    pick = rng.random((len(batch.steps), 1)) < share
    return dataclasses.replace(
        batch, goals=np.where(pick, source.propose(batch, rng), batch.goals)
    )


def relabel(
    batch: Transitions, source: GoalSource | None, probability: float, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return goals (B, m) and the mask (B,) of the rows that got one from ``source``."""
    mask = rng.random(len(batch.steps)) < probability
    if source is None or not probability:
        return batch.goals, np.zeros_like(mask)
    return np.where(mask[:, None], source.propose(batch, rng, mask), batch.goals), mask
