"""How fast a node answers."""

from __future__ import annotations

from collections import deque
import statistics
import time

__all__ = ['Latency']

KEPT = 10_000
MICROSECOND, SECOND = 1_000, 1_000_000_000
"""In nanoseconds."""


class Latency:
    """Times from the receipt of a message to the end of publishing its answer."""

    def __init__(self, deadline: float) -> None:
        """Count answers that take longer than ``deadline`` [s]."""
        self._deadline = deadline * SECOND
        self._times: deque[int] = deque(maxlen=KEPT)
        self.missed = 0
        """Answers that were not published in time, in all."""

    def note(self, received: int) -> None:
        """Take one answer, just published, to a message received at this time of day [ns]."""
        taken = time.time_ns() - received
        self._times.append(taken)
        if taken > self._deadline:
            self.missed += 1

    def figures(self) -> dict[str, str]:
        """Return what diagnostics tell of the answers since the last call, and begin anew."""
        times = [self._times.popleft() for _ in range(len(self._times))] or [0]
        return {
            'median latency [us]': f'{statistics.median(times) / MICROSECOND:.0f}',
            'longest latency [us]': f'{max(times) / MICROSECOND:.0f}',
            'deadlines missed': str(self.missed),
        }
