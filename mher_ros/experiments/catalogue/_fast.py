"""Variants of ``fast``."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.experiment import Variant

__all__ = ['fast_variant']


def fast_variant(name: str, task: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return a variant that is evaluated after every episode of 25 steps."""
    values: dict[str, Any] = {'schedule.steps': 1500, 'schedule.episodes_per_epoch': 1}
    if task == 'fetch_reach':
        values['task.reachable_goals'] = False  # as published results have it
    values |= {key.replace('__', '.'): value for key, value in changes.items()}
    return Variant(name, task, algorithm, 'fast', tuple(values.items()))
