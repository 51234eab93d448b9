"""Metrics of one run, and estimates over seeds with confidence intervals."""

# Intervals are bootstrapped over seeds, after Agarwal, Schwarzer, Castro, Courville and Bellemare:
# Deep reinforcement learning at the edge of the statistical precipice, NeurIPS 2021 (rliable). The
# generator's seed is fixed: the same runs give the same intervals.

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any, NamedTuple

from mher_ros.interface import Vector
from mher_ros.learning.run.progress import Row
import numpy as np

Rows = list[Row]
NEVER = float('inf')
EARLY = (75, 100, 125, 150)  # environment steps
LAST = 5  # evaluations at the end of a run
DRAWS = 10_000
CONFIDENCE = 0.95
SEED = 2021


def final_success(rows: Rows) -> float:
    """Return the mean success rate of the last 5 evaluations."""
    return mean_success(rows[-LAST:])


def mean_success(rows: Rows) -> float:
    return float(np.mean([_rate(row) for row in rows]))


def first_epoch(rate: float, rows: Rows) -> float:
    """Return the number of the first evaluation with this success rate, from 1."""
    return next((float(n) for n, row in enumerate(rows, 1) if _rate(row) >= rate), NEVER)


def steps_to(rate: float, rows: Rows) -> float:
    """Return the steps of the first of two successive evaluations with this success rate."""
    for row, following in zip(rows, rows[1:], strict=False):
        if min(_rate(row), _rate(following)) >= rate:
            return float(row['env_steps'] or 0)
    return NEVER


def early_success(rows: Rows) -> float:
    """Return the mean of the last known success rates at 75, 100, 125 and 150 steps."""
    known = [[0.0, *(_rate(r) for r in rows if float(r['env_steps'] or 0) <= s)] for s in EARLY]
    return float(np.mean([rates[-1] for rates in known]))


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's; 0 if either is constant."""
    from scipy.stats import spearmanr  # slow to import

    return float(spearmanr(first, second).statistic) if np.ptp(first) and np.ptp(second) else 0.0


def _rate(row: Row) -> float:
    return float(row['success_rate'] or 0.0)


def _goal_distance(run: Mapping[str, Any], when: str) -> float:
    """Return the mean distance of relabelled goals from the desired one."""
    seen = run['record'][when]
    distances = np.linalg.norm(np.array(seen['relabelled']) - np.array(seen['desired']), axis=-1)
    return float(distances.mean())


class Metric(NamedTuple):
    heading: str
    compute: Callable[[Mapping[str, Any]], float]  # returns its value, given the result of a run
    form: str  # format of its values in tables


def _of_rows(heading: str, compute: Callable[[Rows], float], form: str) -> Metric:
    return Metric(heading, lambda run: compute(run['rows']), form)


def _recorded(heading: str, key: str, place: int, form: str = '.3f') -> Metric:
    return Metric(heading, lambda run: run['record'][key][place], form)


METRICS = {
    'final_success': _of_rows('success at the end', final_success, '.2f'),
    'mean_success': _of_rows('mean success', mean_success, '.3f'),
    'first_epoch': _of_rows('first epoch >= 0.9', lambda rows: first_epoch(0.9, rows), 'g'),
    'steps_to_95': _of_rows('steps to 95 %', lambda rows: steps_to(0.95, rows), '.0f'),
    'early_success': _of_rows('mean success at 75 to 150 steps', early_success, '.2f'),
    'early_distance': Metric(
        'goals to the desired one, early', lambda run: _goal_distance(run, 'early'), '.3f'
    ),
    'late_distance': Metric('late', lambda run: _goal_distance(run, 'late'), '.3f'),
    'first_distance': _recorded('relabelled to desired goals, first', 'relabelled', 0),
    'last_distance': _recorded('last', 'relabelled', -1),
    'first_loss': _recorded('supervised loss, first', 'loss', 0),
    'last_loss': _recorded('last', 'loss', -1),
    'first_return': _recorded('return, first', 'return', 0, '.1f'),
    'last_return': _recorded('last', 'return', -1, '.1f'),
    'correlation': Metric(
        'rank correlation of loss and return',
        lambda run: rank_correlation(run['record']['loss'], run['record']['return']),
        '.2f',
    ),
}
PROGRESS_METRICS = ('final_success', 'mean_success', 'first_epoch')
"""Those in the tables of every experiment."""
RECORDED_METRICS = {
    'relabelled_goals': ('early_distance', 'late_distance'),
    'goal_distance': ('first_distance', 'last_distance'),
    'supervised_loss': ('first_loss', 'last_loss', 'first_return', 'last_return', 'correlation'),
}
"""Those of what each recorder records."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A value and its 95 % interval; each may be infinite (never)."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """Return JSON values; infinity becomes None."""
        return {
            name: value if math.isfinite(value) else None
            for name, value in dataclasses.asdict(self).items()
        }


def median_over_seeds(values: Sequence[float]) -> Estimate:
    runs = np.asarray(values, float)
    drawn = _draw(runs, np.random.default_rng(SEED))
    return Estimate(float(np.median(runs)), *interval(np.median(drawn, axis=1)))


def probability_of_improvement(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return how probably a run of ours has a lower value than one of theirs; a tie is half."""
    # Over all pairs of runs; both sides are resampled, each on its own (Agarwal et al. 2021).
    one, other = np.asarray(ours, float), np.asarray(theirs, float)
    better = np.where(one[:, None] == other, 0.5, one[:, None] < other)
    rng = np.random.default_rng(SEED)
    rows = rng.integers(len(one), size=(DRAWS, len(one), 1))
    columns = rng.integers(len(other), size=(DRAWS, 1, len(other)))
    return Estimate(float(better.mean()), *interval(better[rows, columns].mean(axis=(1, 2))))


def interquartile_mean_over_tasks(values: Sequence[Sequence[float]]) -> Estimate:
    """Return the interquartile mean over all seeds of all tasks; resampled within each task."""
    from scipy.stats import trim_mean  # slow to import

    rng = np.random.default_rng(SEED)
    tasks = [np.asarray(runs, float) for runs in values]
    drawn = np.concatenate([_draw(runs, rng) for runs in tasks], axis=1)
    value = float(trim_mean(np.concatenate(tasks), 0.25))
    return Estimate(value, *interval(trim_mean(drawn, 0.25, axis=1)))


def _draw(runs: Vector, rng: np.random.Generator) -> Vector:
    return runs[rng.integers(len(runs), size=(DRAWS, len(runs)))]


def interval(drawn: Vector) -> tuple[float, float]:
    """Return the 95 % interval, rounded outwards to drawn values: some may be infinite."""
    ordered = np.sort(drawn)
    outside = (1.0 - CONFIDENCE) / 2.0 * (len(ordered) - 1)
    first, last = math.floor(outside), math.ceil(len(ordered) - 1 - outside)
    return float(ordered[first]), float(ordered[last])
