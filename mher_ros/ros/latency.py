"""How fast a node answers."""

from __future__ import annotations

from collections import deque
import statistics
import time

__all__ = ['Latency']

KEPT = 10_000
MICROSECOND = 1_000
"""In nanoseconds."""


class Latency:
    """Times from the receipt of a message to the end of publishing its answer."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=KEPT)

    def note(self, received: int) -> None:
        """Take one answer, just published, to a message received at this time of day [ns]."""
        self._times.append(time.time_ns() - received)

    def take(self) -> tuple[int, float, float]:
        """Return count, median and longest since the last call [us], and begin anew."""
        times = [self._times.popleft() for _ in range(len(self._times))]
        if not times:
            return 0, 0.0, 0.0
        return len(times), statistics.median(times) / MICROSECOND, max(times) / MICROSECOND
