"""Whether an arm that is commanded by velocities moves as it is commanded."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

__all__ = ['Following']

Vector = NDArray[np.float64]

WINDOW = 0.3
"""Time over which displacements are compared [s]."""
DELAYS = (0.0, 0.05, 0.1, 0.15, 0.2)
"""Delays of an arm that follows [s]; the one that explains its motion best counts."""
NOISE = 0.004
"""Difference that says nothing, however slow the motion [m]."""
MISSING = 0.5
"""Share of the commanded displacement that may be missing."""


class Following:
    """
    Compares the displacement of the tool with the one that was commanded, up to 0.2 s before.

    There is no set-point that such an arm could be far from, and how far it lags depends on its
    delay. An arm that is blocked misses the whole displacement, whatever the delay.
    """

    def __init__(self) -> None:
        self._history: deque[tuple[float, Vector, Vector]] = deque()
        self._sum = np.zeros(3)

    def command(self, displacement: Vector) -> None:
        """Take note of what a command asks of the tool (3,) [m]."""
        self._sum = self._sum + displacement

    def error(self, now: float, tool: Vector) -> tuple[float, float]:
        """Take the measured tool (3,) [m]; return what is missing, and what may be [m]."""
        history = self._history
        history.append((now, self._sum, tool))
        while len(history) > 1 and history[1][0] <= now - WINDOW - DELAYS[-1]:
            history.popleft()
        moved = tool - self._at(now - WINDOW)[2]
        commanded = [
            self._at(now - delay)[1] - self._at(now - delay - WINDOW)[1] for delay in DELAYS
        ]
        missing = min(float(np.linalg.norm(moved - one)) for one in commanded)
        longest = max(float(np.linalg.norm(one)) for one in commanded)
        return missing, NOISE + MISSING * longest

    def _at(self, time: float) -> tuple[float, Vector, Vector]:
        """Return the last entry until ``time``, or the first."""
        history = self._history
        low, high = 0, len(history) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if history[middle][0] <= time:
                low = middle
            else:
                high = middle - 1
        return history[low]
