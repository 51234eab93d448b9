"""A run's learning curve, made of the rows of its progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ['COLUMNS', 'curve_of']

COLUMNS = ('env_steps', 'success_rate', 'final_error')
"""Of progress.csv."""


def curve_of(rows: Iterable[Mapping[str, float | str | None]]) -> NDArray[np.float64]:
    """Return rows (n, 3) of ``COLUMNS``; those in which a figure is missing are left out."""
    found = [[_number(row[name]) for name in COLUMNS] for row in rows]
    curve = np.array(found, np.float64).reshape(-1, len(COLUMNS))
    return curve[np.isfinite(curve).all(axis=1)]


def _number(figure: float | str | None) -> float:
    return np.nan if figure in (None, '') else float(figure)
