"""Every core kept busy, as beside a program that computes."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import subprocess
import sys

__all__ = ['busy_cores']


@contextlib.contextmanager
def busy_cores() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run a process that never waits for each core that this one may use, and end them all."""
    with contextlib.ExitStack() as at_the_end:
        yield [at_the_end.enter_context(_busy()) for _ in os.sched_getaffinity(0)]


@contextlib.contextmanager
def _busy() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, '-c', 'while True: pass'])
    try:
        yield process
    finally:
        process.kill()
        process.wait()
