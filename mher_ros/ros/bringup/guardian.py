"""
Ends what a supervisor started and cannot end itself, because it is killed or fails.

The supervisor runs this file and tells it of process groups, one a line: ``+123`` was started,
``-123`` has ended. When the lines end, whatever is left has lost its supervisor and is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import subprocess
import sys
import time

__all__ = ['guarded']


@contextlib.contextmanager
def guarded(interrupt: float, terminate: float) -> Iterator[Callable[[str], None]]:
    """
    Run a guardian; yields the function that tells it a line, and waits for it in the end.

    ``interrupt`` is the time from its SIGINT to SIGTERM, ``terminate`` from there to SIGKILL [s].
    """
    process = subprocess.Popen(
        # Without site (-S) it starts at once: it needs the standard library only.
        [sys.executable, '-I', '-S', __file__, str(interrupt), str(terminate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert process.stdin is not None
    pipe = process.stdin

    def tell(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # whoever killed it: the supervisor goes on
            pipe.write(line + '\n')
            pipe.flush()

    try:
        yield tell
    finally:
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
        process.wait()


def main(interrupt: float, terminate: float) -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == '+' else groups.discard)(int(line[1:]))
    ladder = ((signal.SIGINT, interrupt), (signal.SIGTERM, terminate), (signal.SIGKILL, 0.0))
    for number, patience in ladder:
        groups = _send(number, groups)
        until = time.monotonic() + patience
        while groups and time.monotonic() < until:
            # They are not children of this process, so there is nothing to wait on.
            time.sleep(0.05)
            groups = _send(0, groups)


def _send(number: int, groups: set[int]) -> set[int]:
    """Send the signal (0: none) and return the groups that are still there."""
    present = set()
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
            present.add(group)
    return present


if __name__ == '__main__':
    main(float(sys.argv[1]), float(sys.argv[2]))
