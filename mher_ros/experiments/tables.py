"""Runs to figures, figures to a Markdown table."""

from __future__ import annotations

from collections.abc import Callable

from mher_ros.experiments.experiment import Experiment, Rows
from mher_ros.learning.progress import Row
import numpy as np

__all__ = ['early_success', 'markdown_tables', 'MEASURES', 'steps_to']

NEVER = float('inf')
EARLY = (100, 125, 150, 175, 200)


def steps_to(rate: float, rows: Rows) -> float:
    """Return the steps at which success first reaches ``rate`` and holds it once more."""
    for row, following in zip(rows, rows[1:], strict=False):
        if min(_rate(row), _rate(following)) >= rate:
            return float(row['env_steps'] or 0)
    return NEVER


def _rate(row: Row) -> float:
    return float(row['success_rate'] or 0.0)


def mean_success(rows: Rows) -> float:
    """Return the mean success rate over all evaluations."""
    return float(np.mean([_rate(row) for row in rows]))


def early_success(rows: Rows) -> float:
    """Return the mean success rate at 100, 125, 150, 175 and 200 steps, as last evaluated."""
    known = [[0.0, *(_rate(r) for r in rows if float(r['env_steps'] or 0) <= s)] for s in EARLY]
    return float(np.mean([rates[-1] for rates in known]))


MEASURES: dict[str, tuple[str, Callable[[Rows], float], str]] = {
    'steps_to_95': ('steps to 95 %', lambda rows: steps_to(0.95, rows), '.0f'),
    'mean_success': ('mean success', mean_success, '.3f'),
    'early_success': ('mean success at 100 to 200 steps', early_success, '.2f'),
}
"""Name to (heading, function of a run's rows, format)."""


def markdown_tables(experiment: Experiment, results: dict[str, dict[int, Rows]]) -> str:
    """Return a table for each measure of the experiment."""
    return '\n\n'.join(_table(experiment, name, results) for name in experiment.measures)


def _table(experiment: Experiment, name: str, results: dict[str, dict[int, Rows]]) -> str:
    """Return one line a variant: each seed's figure, then median and mean."""
    heading, measure, form = MEASURES[name]
    seeds = sorted({seed for runs in results.values() for seed in runs})
    lines = [
        f'| {heading} | {" | ".join(f"seed {seed}" for seed in seeds)} | median | mean |',
        '|---' * (len(seeds) + 3) + '|',
    ]
    for variant in experiment.variants:
        runs = results.get(variant.name, {})
        figures = {seed: measure(rows) for seed, rows in runs.items()}
        cells = [format(figures[s], form) if s in figures else '' for s in seeds]
        values = list(figures.values())
        summary = [format(f(values), form) if values else '' for f in (np.median, np.mean)]
        cells = ['never' if cell == 'inf' else cell for cell in (*cells, *summary)]
        lines.append(f'| {variant.name} | {" | ".join(cells)} |')
    return '\n'.join(lines)
