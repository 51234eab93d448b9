"""How fast a run goes, and for how long it will."""

from __future__ import annotations

__all__ = ['Pace']


class Pace:
    """Steps over time since it was first told of them, evaluations and waits counted in."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)

    def note(self, steps: int, now: float) -> None:
        """Learn how many steps were done at ``now`` [s]."""
        if self._first is None:
            self._first = self._last = (steps, now)
        elif steps != self._last[0]:
            self._last = (steps, now)

    def seconds_until(self, steps: int, now: float) -> float | None:
        """Return how long it takes until so many steps are done [s]; None if nobody knows."""
        if self._first is None or self._last[0] == self._first[0]:
            return None
        done, took = (last - first for last, first in zip(self._last, self._first, strict=True))
        expected = (steps - self._last[0]) * took / done
        return max(0.0, expected - (now - self._last[1]))
