"""The supervised loss on relabelled rows, and the return that it bounds from below."""

from __future__ import annotations

from mher_ros.experiments.recorders.recorder import Recorder
from mher_ros.learning.agent import Agent
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.progress import Row
from mher_ros.tasks import make
import numpy as np
import torch

__all__ = ['SupervisedLoss']

BATCH = 1024
EPISODES = 20


class SupervisedLoss(Recorder):
    r"""
    One value a row, over ``env_steps``.

    ``loss``: :math:`\overline{\|a - \pi(s, g')\|^2}` over relabelled rows (Eq. 6); ``return``:
    :math:`\overline{\sum_t \gamma^t r_t}` over test episodes.
    """

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self._tasks = [make(config.task_name, config.task) for _ in range(EPISODES)]

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Measure both."""
        for name, value in (
            ('env_steps', row['env_steps']),
            ('loss', _loss(agent, rng)),
            ('return', self._return(agent, rng)),
        ):
            self.record.setdefault(name, []).append(value)

    def _return(self, agent: Agent, rng: np.random.Generator) -> float:
        """Return the mean discounted return of the policy from random starts."""
        act = agent.policy_function()
        seeds = rng.integers(2**32, size=EPISODES).tolist()
        seen = [task.reset(seed=seed)[0] for task, seed in zip(self._tasks, seeds, strict=True)]
        goals = np.array([one['desired_goal'] for one in seen])
        total = np.zeros(EPISODES)
        for step in range(self.config.task.episode_steps):
            actions = act(np.array([one['observation'] for one in seen]), goals)
            done = [task.step(a) for task, a in zip(self._tasks, actions, strict=True)]
            seen = [one[0] for one in done]
            total += self.config.agent.gamma**step * np.array([one[1] for one in done])
        return float(total.mean())


def _loss(agent: Agent, rng: np.random.Generator) -> float:
    batch = agent.replay.sample(BATCH, rng)
    assert agent.goal_source is not None
    goals = agent.goal_source.propose(batch, rng)
    actions = agent.policy(
        torch.from_numpy(agent.interface.with_goal(batch.observations, goals)),
        torch.from_numpy(goals),
    )
    return float((actions - torch.from_numpy(batch.actions)).square().sum(-1).mean())
