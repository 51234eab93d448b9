"""What a run notes beside its rows."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mher_ros.options import OptionError

if TYPE_CHECKING:
    from mher_ros.experiments.recorders.recorder import Recorder
    from mher_ros.learning.config import TrainConfig

__all__ = ['make_recorder', 'RECORDERS']

RECORDERS = {
    'relabelled_goals': 'RelabelledGoals',
    'goal_distance': 'GoalDistance',
    'supervised_loss': 'SupervisedLoss',
}
"""Module to class; imported when asked for, since torch is not light."""


def make_recorder(name: str, config: TrainConfig) -> Recorder:
    """Return a new recorder of that name."""
    if name not in RECORDERS:
        raise OptionError(f'unknown recorder {name!r}; there are {", ".join(RECORDERS)}')
    module = importlib.import_module(f'{__name__}.{name}')
    made: Recorder = getattr(module, RECORDERS[name])(config)
    return made
