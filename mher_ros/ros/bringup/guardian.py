"""Stops the processes of a supervisor that was killed or failed."""

# The supervisor runs this file and writes process groups to its standard input, one per line:
# ``+123`` was started, ``-123`` has ended. At the end of the input the remaining groups are
# stopped.

from collections.abc import Callable, Iterator
import contextlib
import os
import signal
import subprocess
import sys
import time


@contextlib.contextmanager
def guarded(interrupt: float, terminate: float) -> Iterator[Callable[[str], None]]:
    """Run a guardian, with times to SIGTERM and SIGKILL [s]; yield what sends it a line."""
    process = subprocess.Popen(
        # Without site packages (-S) it starts fast; it needs only the standard library.
        [sys.executable, '-I', '-S', __file__, str(interrupt), str(terminate)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert process.stdin is not None
    pipe = process.stdin

    def send(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # the supervisor continues without it
            pipe.write(line + '\n')
            pipe.flush()

    try:
        yield send
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
            # They are not children of this process, so it cannot wait for them.
            time.sleep(0.05)
            groups = _send(0, groups)


def _send(number: int, groups: set[int]) -> set[int]:
    """Send the signal (0: none) and return the groups that still exist."""
    present = set()
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
            present.add(group)
    return present


if __name__ == '__main__':
    main(float(sys.argv[1]), float(sys.argv[2]))
