"""What looks at a learner after each evaluation."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any

from mher_ros.learning.agent import Agent
from mher_ros.learning.config import TrainConfig
from mher_ros.learning.progress import Progress, Row
from mher_ros.learning.train import Trainer
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import Evaluator
import numpy as np
import torch

__all__ = ['Recorder']

LOOKING_STREAM = 7
"""Second number of the generator's seed; nothing in a run is drawn from this stream."""


class Recorder(Progress, abc.ABC):
    """Notes figures in ``record``, and changes nothing in the run."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.record: dict[str, Any] = {}
        self._trainer: Trainer | None = None

    @abc.abstractmethod
    def note(self, agent: Agent, rng: np.random.Generator, row: Row) -> None:
        """Look at the agent after the evaluation that ``row`` tells of."""

    def train(self, folder: Path) -> Trainer:
        """Do the run with this looking on."""
        torch.set_num_threads(1)
        folder.mkdir(parents=True)
        config = self.config
        trainer = self._trainer = Trainer(
            config,
            make(config.task_name, config.task),
            Evaluator(config.task_name, config.task, workers=1).run,
            folder,
            [self],
        )
        trainer.run()
        return trainer

    def row(self, row: Row) -> None:
        """Look, with chance of its own."""
        assert self._trainer is not None
        agent = self._trainer.agent
        assert isinstance(agent, Agent)  # what plans has no goals that it learns with
        rng = np.random.default_rng([self.config.seed, LOOKING_STREAM, agent.updates])
        with torch.no_grad():
            self.note(agent, rng, row)
