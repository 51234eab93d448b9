"""
Figures over seeds with intervals, made by drawing the seeds again.

After Agarwal, Schwarzer, Castro, Courville and Bellemare: Deep reinforcement learning at the edge
of the statistical precipice, NeurIPS 2021 (rliable). The generator's seed is fixed: the same runs
give the same intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

__all__ = ['Estimate', 'interquartile_mean', 'median_over_seeds', 'middle_mean_over_tasks']

DRAWS = 10_000
CONFIDENCE = 0.95
SEED = 2021


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A figure and its 95 % interval; each may be infinite (never)."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain JSON values; what is infinite becomes None."""
        return {
            name: value if math.isfinite(value) else None
            for name, value in dataclasses.asdict(self).items()
        }


def median_over_seeds(figures: Sequence[float]) -> Estimate:
    """Return the median of figures, one a seed."""
    runs = np.asarray(figures, float)
    drawn = _draw(runs, np.random.default_rng(SEED))
    return _estimate(float(np.median(runs)), np.median(drawn, axis=1))


def middle_mean_over_tasks(figures: Sequence[Sequence[float]]) -> Estimate:
    """Return the interquartile mean of figures of each task's seeds; a draw keeps every task."""
    rng = np.random.default_rng(SEED)
    tasks = [np.asarray(runs, float) for runs in figures]
    drawn = np.concatenate([_draw(runs, rng) for runs in tasks], axis=1)
    value = interquartile_mean(np.concatenate(tasks)[None])
    return _estimate(float(value[0]), interquartile_mean(drawn))


def interquartile_mean(figures: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means (B,) of (B, n) figures without the lowest and the highest quarter."""
    count = figures.shape[1]
    cut = count // 4
    mean: NDArray[np.float64] = np.sort(figures, axis=1)[:, cut : count - cut].mean(axis=1)
    return mean


def _draw(runs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return runs[rng.integers(len(runs), size=(DRAWS, len(runs)))]


def _estimate(value: float, drawn: NDArray[np.float64]) -> Estimate:
    """Cut both ends off, outwards to what was drawn: nothing lies between a number and never."""
    ordered = np.sort(drawn)
    outside = (1.0 - CONFIDENCE) / 2.0 * (len(ordered) - 1)
    first, last = math.floor(outside), math.ceil(len(ordered) - 1 - outside)
    return Estimate(value, float(ordered[first]), float(ordered[last]))
