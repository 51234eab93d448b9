"""One core for two processes that take turns."""

from __future__ import annotations

import os
from pathlib import Path
import zlib

__all__ = ['SharedCore']


class SharedCore:
    """
    The core on which both sides of a lockstep work.

    One of them always waits for the other, so a second core gains nothing, and to wake somebody on
    another core takes longer than the message. Both sides find the same core without a word, by
    the ROS domain and the topic they share; in the next domain, the next core is found.
    """

    def __init__(self, domain: int, topic: str) -> None:
        self._allowed = _allowed_cores()
        cores = sorted(self._allowed)
        self.core: int | None = None
        if len(cores) > 1:
            self.core = cores[(domain + zlib.crc32(topic.encode())) % len(cores)]

    def enter(self) -> None:
        """Keep this process, with all threads that it has or will have, on the core."""
        if self.core is not None:
            _keep_on({self.core})

    def leave(self) -> None:
        """Let this process work where it was allowed to before."""
        if self.core is not None:
            _keep_on(self._allowed)


def _allowed_cores() -> set[int]:
    """Return the cores that this process may use; none where a system does not tell."""
    return os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else set()


def _keep_on(cores: set[int]) -> None:
    for thread in Path('/proc/self/task').iterdir():
        try:
            os.sched_setaffinity(int(thread.name), cores)
        except OSError:
            pass  # It has ended meanwhile, or somebody forbids it: slower, not wrong.
