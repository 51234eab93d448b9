"""One CPU core for two processes that take turns."""

import contextlib
import os
from pathlib import Path
import zlib


class SharedCore:
    """The core on which both processes of a lockstep run."""

    # One of them always waits for the other, so a second core gains nothing, and to wake a thread
    # on another core takes longer than the message. Both processes compute the same core from the
    # ROS domain and the full name of the topic that they share.
    def __init__(self, domain: int, topic: str) -> None:
        # Not all systems have it.
        self._allowed = os.sched_getaffinity(0) if hasattr(os, 'sched_getaffinity') else set()
        cores = sorted(self._allowed)
        self.core: int | None = None
        if len(cores) > 1:
            self.core = cores[(domain + zlib.crc32(topic.encode())) % len(cores)]

    def enter(self) -> None:
        """Restrict this process, with all present and future threads, to the core."""
        if self.core is not None:
            _keep_on({self.core})

    def leave(self) -> None:
        """Undo ``enter``."""
        if self.core is not None:
            _keep_on(self._allowed)


def _keep_on(cores: set[int]) -> None:
    for thread in Path('/proc/self/task').iterdir():
        # The thread may have ended, or it is not permitted: slower, but not wrong.
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread.name), cores)
