"""A joint trajectory that is being followed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['Trajectory']


class Trajectory:
    """Straight lines from where the arm is through the points, each at its time."""

    def __init__(self, start: ArrayLike, times: ArrayLike, points: ArrayLike) -> None:
        """Take the set-point at time 0 (k,), times (p,) [s] that never go back, points (p, k)."""
        self._times = np.concatenate(((0.0,), np.asarray(times, np.float64)))
        self._points = np.vstack((np.asarray(start, np.float64)[None], points))
        self._now = 0.0

    def is_over(self) -> bool:
        """Return whether the last point has been given out."""
        return self._now > self._times[-1]

    def advance(self, period: float) -> NDArray[np.float64]:
        """Return the set-point (k,) at the end of the coming period [s]."""
        self._now += period
        # Of points at the same time the last one counts.
        after = int(np.searchsorted(self._times, self._now, side='right'))
        if after == len(self._times):
            return self._points[-1]
        before = self._times[after - 1]
        share = (self._now - before) / (self._times[after] - before)
        return (1.0 - share) * self._points[after - 1] + share * self._points[after]
