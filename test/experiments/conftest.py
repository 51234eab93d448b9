"""What tests of running jobs share."""

import contextlib
from pathlib import Path
import time

import pytest


@pytest.fixture
def wait_for():
    """Return a function that waits for a condition and returns what it gave."""

    def wait(condition, seconds=90):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return found

    return wait


@pytest.fixture
def at_work():
    """Return a function that tells whether a process has come to learn: it has torch."""

    def look(pid):
        with contextlib.suppress(OSError):
            return 'libtorch' in Path(f'/proc/{pid}/maps').read_text()
        return False

    return look


@pytest.fixture
def children():
    """Return a function that gives the children of a process."""

    def find(pid):
        found = []
        for tasks in Path(f'/proc/{pid}/task').glob('*/children'):
            with contextlib.suppress(OSError):
                found += [int(child) for child in tasks.read_text().split()]
        return found

    return find
