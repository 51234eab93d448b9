"""How long a node took for each of its answers, not only for those of the last second."""

from __future__ import annotations

from array import array
from collections import Counter
from pathlib import Path
import time
from typing import Any

from mher_ros.errors import ArmError
from mher_ros.ros.latency import Latency
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['AnswerTimes', 'histogram', 'summary', 'taken_by']

Times = NDArray[np.int64]

ENOUGH = 5000
"""States of which the longest thousandth is told: five times or more."""


class AnswerTimes(Latency):
    """A ``Latency`` that forgets nothing; it costs a node a fraction of a microsecond more."""

    def __init__(self, deadline: float) -> None:
        """Count answers that take longer than ``deadline`` [s]."""
        super().__init__(deadline)
        # By turns: when a message was received, and its answer published [ns].
        self._kept = array('q')

    def note(self, received: int) -> None:
        """Take one answer, just published, to a message received at this time of day [ns]."""
        self._kept.extend((received, time.time_ns()))
        super().note(received)

    def write(self, path: Path) -> None:
        """Write when each message was received and answered, (a, 2) [ns], as numpy does."""
        np.save(path, np.array(self._kept, np.int64).reshape(-1, 2))


def taken_by(answers: Times, told: ArrayLike) -> Times:
    """Return how long (b,) [ns] those of the ``answers`` (a, 2) took that came while ``told``."""
    times = np.asarray(told)
    received, published = answers.T
    return (published - received)[(times[0] <= received) & (received < times[-1])]


def summary(answers: Times, told: ArrayLike) -> dict[str, Any]:
    """
    Return median, 99th and 99.9th percentile of the times taken [us], and deadlines missed.

    States were published at the times ``told`` (s,) [ns]; the last one only ends the time of the
    one before. A deadline is missed unless an answer to the state is published before the next
    state is. Of fewer than ``ENOUGH`` states there is no 99.9th percentile: None.
    """
    times = np.asarray(told)
    taken = taken_by(answers, times)
    if not len(taken):
        raise ArmError(f'an answer to any of {len(times)} joint states was expected, got none')
    median, p99, p999 = (np.percentile(taken, (50, 99, 99.9)) / 1000.0).tolist()
    received, published = answers.T
    state = np.searchsorted(times, received, 'right') - 1
    during = (state >= 0) & (state < len(times) - 1)
    state, published = state[during], published[during]
    met = np.zeros(len(times) - 1, bool)
    met[state[published < times[state + 1]]] = True
    return {
        'median_us': median,
        'p99_us': p99,
        'p999_us': p999 if len(met) >= ENOUGH else None,
        'missed': int((~met).sum()),
    }


def histogram(taken: Times) -> dict[str, int]:
    """Return how many took so many microseconds."""
    counts = Counter((taken // 1000).tolist())
    return {str(micros): counts[micros] for micros in sorted(counts)}
