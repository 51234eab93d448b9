"""Figures of one run, of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mher_ros.learning.progress import Row
import numpy as np
from scipy.stats import rankdata

__all__ = [
    'early_success',
    'final_success',
    'first_epoch',
    'mean_success',
    'MEASURES',
    'NEVER',
    'rank_correlation',
    'steps_to',
]

Rows = list[Row]
NEVER = float('inf')
EARLY = (75, 100, 125, 150)
LAST = 5
"""Evaluations that make the end of a run."""


def final_success(rows: Rows) -> float:
    """Return the mean success rate of the last 5 evaluations."""
    return mean_success(rows[-LAST:])


def mean_success(rows: Rows) -> float:
    """Return the mean success rate over all evaluations."""
    return float(np.mean([_rate(row) for row in rows]))


def first_epoch(rate: float, rows: Rows) -> float:
    """Return the number of the first evaluation with this success rate, from 1."""
    for number, row in enumerate(rows, 1):
        if _rate(row) >= rate:
            return float(number)
    return NEVER


def steps_to(rate: float, rows: Rows) -> float:
    """Return the steps at which success first reaches ``rate`` and holds it once more."""
    for row, following in zip(rows, rows[1:], strict=False):
        if min(_rate(row), _rate(following)) >= rate:
            return float(row['env_steps'] or 0)
    return NEVER


def early_success(rows: Rows) -> float:
    """Return the mean success rate at 75, 100, 125 and 150 steps, as last evaluated."""
    known = [[0.0, *(_rate(r) for r in rows if float(r['env_steps'] or 0) <= s)] for s in EARLY]
    return float(np.mean([rates[-1] for rates in known]))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's; 0 if either never changes."""
    ranks = np.array([rankdata(first), rankdata(second)])
    return float(np.corrcoef(ranks)[0, 1]) if ranks.std(axis=1).all() else 0.0


MEASURES: dict[str, tuple[str, Callable[[Rows], float], str]] = {
    'steps_to_95': ('steps to 95 %', lambda rows: steps_to(0.95, rows), '.0f'),
    'mean_success': ('mean success', mean_success, '.3f'),
    'early_success': ('mean success at 75 to 150 steps', early_success, '.2f'),
}
"""Name to (heading, function of a run's rows, format), for tables seed by seed."""


def _rate(row: Row) -> float:
    return float(row['success_rate'] or 0.0)
