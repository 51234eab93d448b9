"""A learner with the paper's settings that has seen a few random episodes of fetch_reach."""

from __future__ import annotations

from collections.abc import Callable
import functools
from typing import Any

from mher_ros.learning.agent import Agent
from mher_ros.learning.config import make_config
from mher_ros.learning.replay import Episode
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed
from mher_ros.tasks.task import Task
import numpy as np

__all__ = ['EPISODES', 'filled_agent', 'PRESET', 'random_episodes', 'TASK', 'updates_of']

TASK, PRESET = 'fetch_reach', 'paper'
EPISODES = 20
"""Random episodes in every replay."""


def filled_agent(algorithm: str = 'mher', changes: dict[str, Any] | None = None) -> Agent:
    """Return a learner with these options changed and the episodes in its replay."""
    config = make_config(TASK, algorithm, PRESET, changes=changes)
    agent = Agent(make(TASK).interface, config)
    for episode in random_episodes(config.schedule.episode_steps):
        agent.store(episode)
    return agent


@functools.cache
def random_episodes(steps: int) -> tuple[Episode, ...]:
    """Return episodes of random actions, always the same."""
    task = make(TASK)
    return tuple(_random_episode(task, steps, index) for index in range(EPISODES))


def updates_of(agent: Agent, count: int) -> Callable[[], None]:
    """Return what does so many updates when it is called."""

    def run() -> None:
        for _ in range(count):
            agent.update()

    return run


def _random_episode(task: Task, steps: int, index: int) -> Episode:
    shape = steps, len(task.interface.action)
    actions = np.random.default_rng(index).uniform(-1, 1, shape).astype(np.float32)
    start, _ = task.reset(seed=episode_seed(0, index))
    observations = [start['observation'], *(task.step(a)[0]['observation'] for a in actions)]
    return Episode(np.stack(observations), actions, start['desired_goal'])
