"""Pictures of runs, in one style."""

from __future__ import annotations

from collections.abc import Mapping
import importlib
from typing import TYPE_CHECKING

from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ['draw', 'explanation']


def draw(name: str, experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return the picture called ``name`` (a file here)."""
    figure: Figure = importlib.import_module(f'{__name__}.{name}').draw(experiment, results)
    return figure


def explanation(name: str) -> str:
    """Return what the picture called ``name`` shows."""
    text: str = importlib.import_module(f'{__name__}.{name}').EXPLAINED
    return text
