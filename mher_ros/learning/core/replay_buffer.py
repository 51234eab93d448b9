"""Replay buffers of real episodes and of model transitions, as preallocated arrays."""

import dataclasses
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.tasks.task import Array
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class Episode:
    """One episode of T steps with one goal."""

    observations: Array  # (T + 1, n)
    actions: Floats  # (T, k)
    goal: Array  # (m,)

    def __len__(self) -> int:
        return len(self.actions)


@dataclasses.dataclass(frozen=True)
class ModelTransitions:
    """B transitions that the model predicted, with their goals."""

    observations: Floats
    actions: Floats
    next_observations: Floats
    goals: Floats


@dataclasses.dataclass(frozen=True)
class Transitions(ModelTransitions):
    """B real transitions with their original goals."""

    slots: NDArray[np.int64]  # (B,) index of the episode in the buffer
    steps: NDArray[np.int64]  # (B,) step t within the episode

    def rows(self, chosen: NDArray[np.int64]) -> 'Transitions':
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return Transitions(**{name: value[chosen] for name, value in values.items()})


class EpisodeReplay:
    """The latest episodes, up to ``capacity`` transitions."""

    def __init__(
        self, capacity: int, episode_steps: int, observation: int, action: int, goal: int
    ) -> None:
        # The operating system provides the memory only when it is written.
        self._slots = slots = max(1, capacity // episode_steps)
        self._steps = episode_steps
        self._arrays: dict[str, NDArray[Any]] = {
            'observations': np.zeros((slots, episode_steps + 1, observation), np.float32),
            'actions': np.zeros((slots, episode_steps, action), np.float32),
            'goals': np.zeros((slots, goal), np.float32),
            'lengths': np.zeros(slots, np.int64),
        }
        self._observations, self._actions, self._goals, self._lengths = self._arrays.values()
        self.episodes_stored = 0

    def __len__(self) -> int:
        return int(self._lengths[: self.episodes_held].sum())

    @property
    def episodes_held(self) -> int:
        return min(self.episodes_stored, self._slots)

    @property
    def last_observation(self) -> Floats | None:
        """The last observation (n,) of the latest episode; None: there is no episode."""
        if not self.episodes_stored:
            return None
        slot = (self.episodes_stored - 1) % self._slots
        return self._observations[slot, self._lengths[slot]]

    def add(self, episode: Episode) -> None:
        """Store an episode of at most ``episode_steps`` steps; it replaces the oldest."""
        length = len(episode)
        if not 0 < length <= self._steps:
            raise ValueError(f'an episode has 1 to {self._steps} steps, got {length}')
        slot = self.episodes_stored % self._slots
        self._observations[slot, : length + 1] = episode.observations
        self._actions[slot, :length] = episode.actions
        self._goals[slot] = episode.goal
        self._lengths[slot] = length
        self.episodes_stored += 1

    def sample(self, count: int, rng: Generator, weights: Array | None = None) -> Transitions:
        """Sample transitions; ``weights`` (episodes_held,) are probabilities of episodes."""
        if weights is None:
            slots = rng.integers(self.episodes_held, size=count)
        else:
            slots = rng.choice(self.episodes_held, size=count, p=weights)
        return self._take(slots, (rng.random(count) * self._lengths[slots]).astype(np.int64))

    def sample_latest(self, rng: Generator) -> Transitions:
        """Sample, with replacement, as many transitions of the latest episode as it has."""
        slot = (self.episodes_stored - 1) % self._slots
        length = int(self._lengths[slot])
        return self._take(np.full(length, slot), rng.integers(length, size=length))

    def sample_future(self, transitions: Transitions, rng: Generator) -> Floats:
        """Sample for each transition a later observation of its episode, s_{t+1} to s_T."""
        left = self._lengths[transitions.slots] - transitions.steps
        ahead = 1 + (rng.random(len(left)) * left).astype(np.int64)
        return self._observations[transitions.slots, transitions.steps + ahead]

    def achieved_paths(self, interface: TaskInterface) -> Floats:
        """Return the achieved goals of each episode (E, T + 1, m), padded with the last one."""
        held = self.episodes_held
        steps = np.minimum(np.arange(self._steps + 1), self._lengths[:held, None])
        observations = self._observations[np.arange(held)[:, None], steps]
        return interface.achieved_goal(observations)

    def sample_sequences(self, count: int, steps: int, rng: Generator) -> tuple[Floats, Floats]:
        """Sample sequences: observations (steps + 1, B, n) and actions (steps, B, k)."""
        slots = rng.integers(self.episodes_held, size=count)
        starts = np.maximum(self._lengths[slots] - steps + 1, 1)
        first = (rng.random(count) * starts).astype(np.int64)
        ahead = np.minimum(np.arange(steps + 1)[:, None] + first, self._lengths[slots])
        return (
            self._observations[slots, ahead],
            self._actions[slots, np.minimum(ahead[:-1], self._lengths[slots] - 1)],
        )

    def state_dict(self) -> dict[str, NDArray[np.generic]]:
        held = {name: array[: self.episodes_held] for name, array in self._arrays.items()}
        return {**held, 'episodes_stored': np.array([self.episodes_stored])}

    def load_state_dict(self, state: dict[str, NDArray[np.generic]]) -> None:
        (stored,) = state['episodes_stored'].tolist()
        held = max(min(int(stored), self._slots), 0)
        for name, own in self._arrays.items():
            check_array(name, state[name], own[:held])
            own[:held] = state[name]
        lengths = self._lengths[:held]
        if not ((0 < lengths) & (lengths <= self._steps)).all():
            raise ValueError(f'lengths: expected 1 to {self._steps} steps per episode')
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


class ModelReplay:
    """The latest ``capacity`` transitions that the model predicted."""

    def __init__(self, capacity: int, observation: int, action: int, goal: int) -> None:
        self._capacity, self._sizes = capacity, (observation, action, observation, goal)
        self._rows = np.zeros((capacity, sum(self._sizes)), np.float32)
        self.stored = 0

    def __len__(self) -> int:
        return min(self.stored, self._capacity)

    def add(self, transitions: ModelTransitions) -> None:
        """Store transitions; they replace the oldest."""
        parts = [getattr(transitions, field.name) for field in dataclasses.fields(transitions)]
        rows = np.concatenate(parts, axis=-1)
        places = (self.stored + np.arange(len(rows)))[-self._capacity :] % self._capacity
        self._rows[places] = rows[-self._capacity :]
        self.stored += len(rows)

    def sample(self, count: int, rng: Generator) -> ModelTransitions:
        rows = self._rows[rng.integers(len(self), size=count)]
        return ModelTransitions(*np.split(rows, np.cumsum(self._sizes)[:-1], axis=-1))

    def state_dict(self) -> dict[str, NDArray[np.generic]]:
        return {'rows': self._rows[: len(self)], 'stored': np.array([self.stored])}

    def load_state_dict(self, state: dict[str, NDArray[np.generic]]) -> None:
        (stored,) = state['stored'].tolist()
        held = max(min(int(stored), self._capacity), 0)
        check_array('rows', state['rows'], self._rows[:held])
        self._rows[:held] = state['rows']
        self.stored = int(stored)


def check_array(where: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise ValueError unless shape and dtype agree and all numbers are finite."""
    kinds = [f'{array.dtype} of shape {array.shape}' for array in (expected, found)]
    if kinds[0] != kinds[1] or not np.isfinite(found).all():
        raise ValueError(f'{where}: expected finite {kinds[0]}, got {kinds[1]}')
