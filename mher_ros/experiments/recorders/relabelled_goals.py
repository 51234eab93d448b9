"""The goals that a real trajectory would be relabelled with, early and late in training."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.recorders.recorder import Recorder
from mher_ros.learning.agent import Agent
from mher_ros.learning.curriculum import GoalCurriculum
from mher_ros.learning.progress import Row
import numpy as np
from numpy.typing import NDArray

__all__ = ['RelabelledGoals']

DRAWS = 4
"""Times that as many steps as the trajectory has are drawn from it."""


class RelabelledGoals(Recorder):
    """
    ``early`` (after the first evaluation) and ``late`` (after the last).

    Each holds of the newest episode: its ``path`` (T + 1, m) of achieved goals, its
    ``desired`` goal (m,), the ``relabelled`` goals (B, m), and ``env_steps``.
    """

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Keep the first look and the latest."""
        relabelled: list[list[float]] = []
        for _ in range(DRAWS):
            batch = agent.replay.sample_latest(rng)
            assert agent.goal_source is not None
            goals = agent.goal_source.propose(batch, rng)
            relabelled += goals[self._picked(goals, batch.goals, agent.updates, rng)].tolist()
        look = {
            'env_steps': row['env_steps'],
            'path': agent.replay.achieved_paths(agent.interface)[batch.slots[0]].tolist(),
            'desired': batch.goals[0].tolist(),
            'relabelled': relabelled,
        }
        self.record.setdefault('early', look)
        self.record['late'] = look

    def _picked(
        self, goals: NDArray[Any], desired: NDArray[Any], updates: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Return the rows that are learnt from: all, or as large a share as a curriculum picks."""
        settings = self.config.relabel
        count = len(goals)
        if settings.candidates == 1:
            return np.arange(count)
        curriculum = GoalCurriculum(settings.closeness, settings.closeness_growth)
        picked = max(1, count // settings.candidates)
        return curriculum.choose(goals, desired, picked, updates, rng)
