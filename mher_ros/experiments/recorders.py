"""Recorders of what a run learns with, besides its rows of progress."""

import abc
from typing import Any

from mher_ros.learning.config import RngStream, TrainConfig
from mher_ros.learning.core.agent import Agent
from mher_ros.learning.relabel.samplers import GoalCurriculum
from mher_ros.learning.run.progress import Progress, Row
from mher_ros.registry import Registry
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray
import torch

BATCH = 1024
DRAWS = 4  # batches drawn from the newest trajectory, each with as many steps as it has
EPISODES = 20  # test episodes for the mean return


class Recorder(Progress, abc.ABC):
    """Adds values of the agent to ``record`` after each evaluation; it changes no agent."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.record: dict[str, Any] = {}

    @abc.abstractmethod
    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Record values of the agent after the evaluation of ``row``."""

    def row(self, row: Row) -> None:
        agent = self.trainer.agent
        assert isinstance(agent, Agent)  # planners do not relabel goals
        rng = np.random.default_rng([self.config.seed, RngStream.RECORDS, agent.updates])
        with torch.no_grad():
            self.note(agent, rng, row)

    def _append(self, **values: Any) -> None:
        for name, value in values.items():
            self.record.setdefault(name, []).append(value)


class GoalDistance(Recorder):
    """
    Mean distances from the desired goal, one per row, over ``env_steps``.

    ``relabelled``: of the proposed goals; ``achieved``: of the goals achieved by the transitions.
    """

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        batch = agent.replay.sample(BATCH, rng)
        assert agent.goal_strategy is not None
        proposed = agent.goal_strategy.propose(batch, rng)
        achieved = agent.interface.achieved_goal(batch.next_observations)
        self._append(
            env_steps=row['env_steps'],
            relabelled=float(agent.interface.distance(proposed, batch.goals).mean()),
            achieved=float(agent.interface.distance(achieved, batch.goals).mean()),
        )


class RelabelledGoals(Recorder):
    """
    The newest episode, ``early`` (after the first evaluation) and ``late`` (after the last).

    Each holds its ``path`` (T + 1, m) of achieved goals, its
    ``desired`` goal (m,), the ``relabelled`` goals (B, m), and ``env_steps``.
    """

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        relabelled: list[list[float]] = []
        for _ in range(DRAWS):
            batch = agent.replay.sample_latest(rng)
            assert agent.goal_strategy is not None
            goals = agent.goal_strategy.propose(batch, rng)
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
        """Return the rows that are learnt from: all, or those that a curriculum picks."""
        settings = self.config.relabel
        if settings.candidates == 1:
            return np.arange(len(goals))
        curriculum = GoalCurriculum(settings.closeness, settings.closeness_growth)
        picked = max(1, len(goals) // settings.candidates)
        distances = self.trainer.agent.interface.distance(goals, desired)
        return curriculum.choose(goals, distances, picked, updates, rng)


class SupervisedLoss(Recorder):
    r"""
    One value per row, over ``env_steps``.

    ``loss``: :math:`\overline{\|a - \pi(s, g')\|^2}` over relabelled rows (Eq. 6); ``return``:
    :math:`\overline{\sum_t \gamma^t r_t}` over test episodes.
    """

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self._tasks = [make(config.task_name, config.task) for _ in range(EPISODES)]

    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        # Keep the order: both draw from the same generator.
        loss, discounted = self._loss(agent, rng), self._return(agent, rng)
        self._append(**{'env_steps': row['env_steps'], 'loss': loss, 'return': discounted})

    def _return(self, agent: Agent, rng: np.random.Generator) -> float:
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

    def _loss(self, agent: Agent, rng: np.random.Generator) -> float:
        batch = agent.replay.sample(BATCH, rng)
        assert agent.goal_strategy is not None
        goals = agent.goal_strategy.propose(batch, rng)
        actions = agent.policy(
            torch.from_numpy(agent.interface.with_goal(batch.observations, goals)),
            torch.from_numpy(goals),
        )
        return float((actions - torch.from_numpy(batch.actions)).square().sum(-1).mean())


RECORDERS: Registry[type[Recorder]] = Registry(
    'recorder',
    {
        'relabelled_goals': RelabelledGoals,
        'goal_distance': GoalDistance,
        'supervised_loss': SupervisedLoss,
    },
)
