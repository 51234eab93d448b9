"""A stop that lasts until it is cleared."""

import threading
import time
from typing import NamedTuple


class Latched(NamedTuple):
    """The state of a latch."""

    reason: str | None
    """Reason of the stop; None: there is no stop."""
    stops: int
    """Number of stops so far: shows a stop that was already cleared, too."""


class StopLatch:
    """
    Latches stops until they are cleared; any thread may call it at any time.

    Its lock is held for one assignment only, so that no thread has to wait.
    """

    def __init__(self) -> None:
        self._now = Latched(None, 0)
        self.changed_at = 0
        """Time of the last change (``time.monotonic_ns``)."""
        self._changing = threading.Lock()

    @property
    def now(self) -> Latched:
        """Reason and count at the same time."""
        return self._now

    @property
    def reason(self) -> str | None:
        """Reason of the first stop since the last ``clear``; None: there is no stop."""
        return self._now.reason

    def set(self, reason: str) -> None:
        """Stop, until ``clear``."""
        with self._changing:
            self.changed_at = time.monotonic_ns()
            self._now = Latched(self._now.reason or reason, self._now.stops + 1)

    def clear(self) -> bool:
        """End a stop; return whether there was one."""
        with self._changing:
            if self._now.reason is None:
                return False
            # In this order: who sees that there is no stop also sees since when.
            self.changed_at = time.monotonic_ns()
            self._now = Latched(None, self._now.stops)
            return True
