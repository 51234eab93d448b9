"""Whole episodes in preallocated arrays, sampled without a loop."""

from __future__ import annotations

import dataclasses

from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import NDArray

__all__ = ['Episode', 'EpisodeReplay', 'Transitions']


@dataclasses.dataclass(frozen=True)
class Episode:
    """One episode of T steps under one goal."""

    observations: NDArray[np.float64]
    """(T + 1, n): before the first step, after each step."""
    actions: NDArray[np.float32]
    """(T, k)"""
    goal: NDArray[np.float64]
    """(m,)"""

    def __len__(self) -> int:
        """Return the number of steps T."""
        return len(self.actions)


@dataclasses.dataclass(frozen=True)
class Transitions:
    """A batch of B real transitions with the goals they were collected under."""

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    next_observations: NDArray[np.float32]
    goals: NDArray[np.float32]
    slots: NDArray[np.int64]
    """(B,) slot of the episode in the replay."""
    steps: NDArray[np.int64]
    """(B,) step t within it."""

    def rows(self, chosen: NDArray[np.int64]) -> Transitions:
        """Return some of the transitions, in the order asked for."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Transitions(**{name: value[chosen] for name, value in values.items()})


def fill(name: str, own: NDArray[np.generic], given: NDArray[np.generic]) -> None:
    """Copy ``given`` to ``own``; ValueError unless it is of the same kind and finite."""
    if given.shape != own.shape or given.dtype != own.dtype or not np.isfinite(given).all():
        raise ValueError(
            f'{name}: {own.shape} finite {own.dtype} are expected, got {given.shape} {given.dtype}'
        )
    own[:] = given


class EpisodeReplay:
    """
    The newest episodes up to a number of transitions.

    Memory is reserved at once, and the system hands it out as it is filled: 4 (n + k) bytes a
    step, since achieved goals are read off observations and a goal is kept once an episode.
    """

    def __init__(
        self, capacity: int, episode_steps: int, observation: int, action: int, goal: int
    ) -> None:
        self._slots = max(1, capacity // episode_steps)
        self._steps = episode_steps
        slots = self._slots
        self._observations = np.zeros((slots, episode_steps + 1, observation), np.float32)
        self._actions = np.zeros((slots, episode_steps, action), np.float32)
        self._goals = np.zeros((slots, goal), np.float32)
        self._lengths = np.zeros(slots, np.int64)
        self.episodes_stored = 0

    def __len__(self) -> int:
        """Return the number of transitions held."""
        return int(self._lengths[: self.episodes_held].sum())

    @property
    def episodes_held(self) -> int:
        """Number of episodes that can be sampled now."""
        return min(self.episodes_stored, self._slots)

    def add(self, episode: Episode) -> None:
        """Store an episode of at most ``episode_steps`` steps in place of the oldest."""
        length = len(episode)
        if not 0 < length <= self._steps:
            raise ValueError(f'an episode has 1 to {self._steps} steps, got {length}')
        slot = self.episodes_stored % self._slots
        self._observations[slot, : length + 1] = episode.observations
        self._actions[slot, :length] = episode.actions
        self._goals[slot] = episode.goal
        self._lengths[slot] = length
        self.episodes_stored += 1

    def sample(
        self,
        count: int,
        rng: np.random.Generator,
        weights: NDArray[np.float64] | None = None,
    ) -> Transitions:
        """
        Draw ``count`` transitions: an episode, then a uniform step of it.

        Episodes are uniform, or drawn by their ``weights`` (episodes_held,), which sum to 1.
        """
        if weights is None:
            slots = rng.integers(self.episodes_held, size=count)
        else:
            slots = rng.choice(self.episodes_held, size=count, p=weights)
        return self._take(slots, (rng.random(count) * self._lengths[slots]).astype(np.int64))

    def sample_latest(self, rng: np.random.Generator) -> Transitions:
        """Draw as many transitions of the newest episode as it has, with replacement."""
        slot = (self.episodes_stored - 1) % self._slots
        length = int(self._lengths[slot])
        return self._take(np.full(length, slot), rng.integers(length, size=length))

    def sample_future(
        self, transitions: Transitions, rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draw for each transition an observation from later in its episode, s_{t+1} to s_T."""
        left = self._lengths[transitions.slots] - transitions.steps
        ahead = 1 + (rng.random(len(left)) * left).astype(np.int64)
        future: NDArray[np.float32] = self._observations[
            transitions.slots, transitions.steps + ahead
        ]
        return future

    def achieved_paths(self, interface: TaskInterface) -> NDArray[np.float32]:
        """Return the goals each episode achieved (E, T + 1, m); a short one stays at its end."""
        held = self.episodes_held
        steps = np.minimum(np.arange(self._steps + 1), self._lengths[:held, None])
        observations = self._observations[np.arange(held)[:, None], steps]
        paths: NDArray[np.float32] = interface.achieved_goal(observations)
        return paths

    def sample_sequences(
        self, count: int, steps: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Draw runs of ``steps`` steps: observations (steps + 1, B, n), actions (steps, B, k)."""
        slots = rng.integers(self.episodes_held, size=count)
        starts = np.maximum(self._lengths[slots] - steps + 1, 1)
        first = (rng.random(count) * starts).astype(np.int64)
        ahead = np.minimum(np.arange(steps + 1)[:, None] + first, self._lengths[slots])
        return (
            self._observations[slots, ahead],
            self._actions[slots, np.minimum(ahead[:-1], self._lengths[slots] - 1)],
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return what ``load_state`` needs, trimmed to the episodes held."""
        held = self.episodes_held
        return {
            'observations': self._observations[:held],
            'actions': self._actions[:held],
            'goals': self._goals[:held],
            'lengths': self._lengths[:held],
            'episodes_stored': np.array([self.episodes_stored]),
        }

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Restore what ``state`` returned."""
        (stored,) = state['episodes_stored'].tolist()
        held = min(int(stored), self._slots)
        for name, own in (
            ('observations', self._observations),
            ('actions', self._actions),
            ('goals', self._goals),
            ('lengths', self._lengths),
        ):
            fill(name, own[: max(held, 0)], state[name])
        lengths = self._lengths[: len(state['lengths'])]
        if not ((0 < lengths) & (lengths <= self._steps)).all():
            raise ValueError(f'lengths of episodes: 1 to {self._steps} are expected')
        self.episodes_stored = int(stored)

    def _take(self, slots: NDArray[np.int64], steps: NDArray[np.int64]) -> Transitions:
        return Transitions(
            observations=self._observations[slots, steps],
            actions=self._actions[slots, steps],
            next_observations=self._observations[slots, steps + 1],
            goals=self._goals[slots],
            slots=slots,
            steps=steps,
        )
