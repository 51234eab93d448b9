"""Transitions that the model made up."""

from __future__ import annotations

import dataclasses

from mher_ros.learning.replay import fill
import numpy as np
from numpy.typing import NDArray

__all__ = ['ImaginedTransitions', 'ModelReplay']


@dataclasses.dataclass(frozen=True)
class ImaginedTransitions:
    """B transitions, with the goals under which they were made."""

    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    next_observations: NDArray[np.float32]
    goals: NDArray[np.float32]


class ModelReplay:
    """The newest made-up transitions; the system hands out its memory as it is filled."""

    def __init__(self, capacity: int, observation: int, action: int, goal: int) -> None:
        self._capacity, self._sizes = capacity, (observation, action, observation, goal)
        self._rows = np.zeros((capacity, sum(self._sizes)), np.float32)
        self.stored = 0

    def __len__(self) -> int:
        """Return the number of transitions held."""
        return min(self.stored, self._capacity)

    def add(self, transitions: ImaginedTransitions) -> None:
        """Store transitions in place of the oldest; of more than there is room for, the last."""
        rows = np.concatenate(_arrays(transitions), axis=-1)
        places = (self.stored + np.arange(len(rows)))[-self._capacity :] % self._capacity
        self._rows[places] = rows[-self._capacity :]
        self.stored += len(rows)

    def sample(self, count: int, rng: np.random.Generator) -> ImaginedTransitions:
        """Draw ``count`` transitions uniformly."""
        rows = self._rows[rng.integers(len(self), size=count)]
        return ImaginedTransitions(*np.split(rows, np.cumsum(self._sizes)[:-1], axis=-1))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Return what ``load_state`` needs, trimmed to the transitions held."""
        return {'rows': self._rows[: len(self)], 'stored': np.array([self.stored])}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Restore what ``state`` returned."""
        (stored,) = state['stored'].tolist()
        fill('rows', self._rows[: max(min(int(stored), self._capacity), 0)], state['rows'])
        self.stored = int(stored)


def _arrays(transitions: ImaginedTransitions) -> list[NDArray[np.float32]]:
    return [getattr(transitions, field.name) for field in dataclasses.fields(transitions)]
