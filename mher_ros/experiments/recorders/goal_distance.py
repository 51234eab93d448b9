"""How far the goals that a batch is relabelled with are from the desired ones."""

from __future__ import annotations

from mher_ros.experiments.recorders.recorder import Recorder
from mher_ros.learning.agent import Agent
from mher_ros.learning.progress import Row
import numpy as np

__all__ = ['GoalDistance']

BATCH = 1024


class GoalDistance(Recorder):
    """
    Mean distances to the desired goal, one a row, over ``env_steps``.

    ``relabelled``: of the proposed goals; ``achieved``: of what the transitions have achieved.
    """

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Propose goals for transitions drawn as in training."""
        batch = agent.replay.sample(BATCH, rng)
        assert agent.goal_source is not None
        proposed = agent.goal_source.propose(batch, rng)
        achieved = agent.interface.achieved_goal(batch.next_observations)
        for name, value in (
            ('env_steps', row['env_steps']),
            ('relabelled', _mean_distance(proposed, batch.goals)),
            ('achieved', _mean_distance(achieved, batch.goals)),
        ):
            self.record.setdefault(name, []).append(value)


def _mean_distance(goals: np.ndarray, desired: np.ndarray) -> float:
    return float(np.linalg.norm(goals - desired, axis=-1).mean())
