"""What looks at a learner after each evaluation."""

from __future__ import annotations

import abc
from typing import Any

from mher_ros.learning import streams
from mher_ros.learning.agent import Agent
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.progress import Progress, Row
from mher_ros.learning.train import Trainer
import numpy as np
import torch

__all__ = ['Recorder']


class Recorder(Progress, abc.ABC):
    """Notes figures in ``record``, and changes nothing in the run."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.record: dict[str, Any] = {}
        self._trainer: Trainer | None = None

    @abc.abstractmethod
    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Look at the agent after the evaluation that ``row`` tells of."""

    def watch(self, trainer: Trainer) -> None:
        """Learn whose evaluations it will hear of."""
        self._trainer = trainer

    def row(self, row: Row) -> None:
        """Look, with chance of its own."""
        assert self._trainer is not None
        agent = self._trainer.agent
        assert isinstance(agent, Agent)  # what plans has no goals that it learns with
        rng = np.random.default_rng([self.config.seed, streams.RECORDS, agent.updates])
        with torch.no_grad():
            self.note(agent, rng, row)
