"""The experiments there are: each is a file here, with an ``EXPERIMENT``."""

from __future__ import annotations

import importlib
import pkgutil

from mher_ros.experiments.experiment import Experiment
from mher_ros.options import OptionError

__all__ = ['all_experiments', 'find_experiment']


def all_experiments() -> dict[str, Experiment]:
    """Return every experiment by its name."""
    return {name: find_experiment(name) for name in _names()}


def find_experiment(name: str) -> Experiment:
    """Return the experiment called ``name``."""
    if name not in _names():
        raise OptionError(f'unknown experiment {name!r}; there are {", ".join(_names())}')
    found: Experiment = importlib.import_module(f'{__name__}.{name}').EXPERIMENT
    return found


def _names() -> list[str]:
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    return [name for name in found if not name.startswith('_')]
