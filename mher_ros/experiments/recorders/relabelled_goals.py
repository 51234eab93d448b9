"""The goals that a real trajectory would be relabelled with, early and late in training."""

from __future__ import annotations

from mher_ros.experiments.recorders.recorder import Recorder
from mher_ros.learning.agent import Agent
from mher_ros.learning.progress import Row
import numpy as np

__all__ = ['RelabelledGoals']

DRAWS = 4
"""Times that as many steps as the trajectory has are drawn from it."""


class RelabelledGoals(Recorder):
    """
    ``early`` (after the first evaluation) and ``late`` (after the last).

    Each holds of the newest episode: its ``path`` (T', m) of achieved goals in order, its
    ``desired`` goal (m,), the ``relabelled`` goals (B, m), and ``env_steps``.
    """

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Keep the first look and the latest."""
        path: dict[int, list[float]] = {}
        relabelled: list[list[float]] = []
        for _ in range(DRAWS):
            batch = agent.replay.sample_latest(rng)
            achieved = agent.interface.achieved_goal(batch.next_observations)
            path.update(zip(batch.steps.tolist(), achieved.tolist(), strict=True))
            assert agent.goal_source is not None
            relabelled += agent.goal_source.propose(batch, rng).tolist()
        look = {
            'env_steps': row['env_steps'],
            'path': [path[step] for step in sorted(path)],
            'desired': batch.goals[0].tolist(),
            'relabelled': relabelled,
        }
        self.record.setdefault('early', look)
        self.record['late'] = look
