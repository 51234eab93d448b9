"""Boxes as lines."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['box_edges']


def box_edges(low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return the ends (n, m) of the edges of a box between corners (m,), pair after pair."""
    corners = np.array([low, high], np.float64)
    size = corners.shape[1]
    ends = []
    for axis in range(size):
        for others in itertools.product((0, 1), repeat=size - 1):
            for end in (0, 1):
                picks = [*others[:axis], end, *others[axis:]]
                ends.append(corners[picks, range(size)])
    return np.array(ends)
