"""Which learner a configuration means."""

from __future__ import annotations

from mher_ros.interface import TaskInterface
from mher_ros.learning.agent import Agent
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.learner import Learner
from mher_ros.learning.plangan import PlanGanAgent

__all__ = ['make_learner']


def make_learner(interface: TaskInterface, config: TrainConfig) -> Learner:
    """Return the learner, untaught."""
    kind = PlanGanAgent if config.agent.actor == 'plan' else Agent
    return kind(interface, config)
