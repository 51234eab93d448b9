"""A stop that lasts until it is cleared."""

from __future__ import annotations

import threading
from typing import NamedTuple

__all__ = ['Latched', 'StopLatch']


class Latched(NamedTuple):
    """What a latch holds at one moment."""

    reason: str | None
    """Why everything is stopped; None: it is not."""
    stops: int
    """How many stops there have been, so that one that is cleared already is noticed, too."""


class StopLatch:
    """
    Stops and their ends, in the order in which they come; any thread may call it at any time.

    Its lock is held for one assignment only: nobody waits for an arm, a file or a message.
    """

    def __init__(self) -> None:
        self._now = Latched(None, 0)
        self._changing = threading.Lock()

    @property
    def now(self) -> Latched:
        """Return reason and count as they belong together."""
        return self._now

    @property
    def reason(self) -> str | None:
        """Why everything is stopped: what the first of all stops since the last end said."""
        return self._now.reason

    def set(self, reason: str) -> None:
        """Stop, until ``clear``."""
        with self._changing:
            self._now = Latched(self._now.reason or reason, self._now.stops + 1)

    def clear(self) -> bool:
        """End a stop; return whether there was one."""
        with self._changing:
            was_stopped = self._now.reason is not None
            self._now = Latched(None, self._now.stops)
            return was_stopped
