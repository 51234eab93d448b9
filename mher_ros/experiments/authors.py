"""The authors' own learning curves, where there are any."""

from __future__ import annotations

import csv
import functools
from pathlib import Path

from mher_ros.experiments.experiment import Variant

__all__ = ['authors_curve']

FILE = Path(__file__).parent / 'data' / 'authors_median_success.csv'
WARMUP_EPISODES, EPISODE_STEPS = 20, 100
AS_THEIRS = {'point2d_large': (('task.box', 4.0),), 'point2d_four_room': ()}
"""What a variant on these tasks changes if it is to be what the authors ran."""


def authors_curve(variant: Variant) -> tuple[list[int], list[float]] | None:
    """Return environment steps and median success of what the authors' code makes of it."""
    if AS_THEIRS.get(variant.task) != variant.changes:
        return None
    rates = _curves().get((variant.task, variant.algorithm, variant.preset))
    if rates is None:
        return None
    return [(WARMUP_EPISODES + 1 + epoch) * EPISODE_STEPS for epoch in range(len(rates))], rates


@functools.cache
def _curves() -> dict[tuple[str, str, str], list[float]]:
    lines = (line for line in FILE.read_text().splitlines() if not line.startswith('#'))
    return {
        (row['task'], row['system'], row['preset']): [
            float(value) for column, value in row.items() if column.startswith('e')
        ]
        for row in csv.DictReader(lines)
    }
