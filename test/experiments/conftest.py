"""What tests of running jobs share."""

import contextlib
from pathlib import Path
import tempfile
import time

import pytest


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Return the folder below which runs of this test have their files while they last."""
    folder = tmp_path / 'scratch'
    folder.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(folder))
    monkeypatch.setenv('TMPDIR', str(folder))
    return folder


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
def children():
    """Return a function that gives the children of a process."""

    def find(pid):
        found = []
        for tasks in Path(f'/proc/{pid}/task').glob('*/children'):
            with contextlib.suppress(OSError):
                found += [int(child) for child in tasks.read_text().split()]
        return found

    return find
