"""Processes that a test can find again, whoever started them."""

import contextlib
import os
from pathlib import Path
import select
import signal
import sys

import pytest
from supervised import Supervised

PATIENCE = 60.0
"""Time within which a process must end [s]."""


class Mark:
    """An environment variable, which every descendant of a marked process has."""

    NAME = 'MHER_TEST_MARK'

    def __init__(self, value):
        self.value = str(value)

    @property
    def environment(self):
        return {**os.environ, self.NAME: self.value}

    def processes(self):
        """Return the command of each marked process by its number."""
        found = {}
        for entry in Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):
                variables = (entry / 'environ').read_bytes().split(b'\0')
                if f'{self.NAME}={self.value}'.encode() in variables:
                    words = (entry / 'cmdline').read_bytes().split(b'\0')
                    found[int(entry.name)] = ' '.join(word.decode() for word in words).strip()
        return found

    def wait_until_none_is_left(self):
        """Fail unless all of them end soon, though nobody tells them to any more."""
        for number, command in self.processes().items():
            with contextlib.suppress(ProcessLookupError):
                descriptor = os.pidfd_open(number)
                ready, _, _ = select.select([descriptor], [], [], PATIENCE)
                os.close(descriptor)
                assert ready, f'still there: {command}'


@pytest.fixture
def mark(tmp_path):
    """Return a mark of this test's own; what bears it does not outlive the test."""
    mark = Mark(tmp_path)
    yield mark
    for number in mark.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


@pytest.fixture
def up(world, mark):
    """Return a function that starts a system as a person does, with the real nodes."""

    def start(*arguments, folder='.'):
        command = [sys.executable, '-m', 'mher_ros', 'up', *arguments]
        return world.start('env', '-C', folder, f'{mark.NAME}={mark.value}', *command)

    return start


@pytest.fixture
def started(mark):
    """Return a function that starts (name, command, role) ...; nothing outlives the test."""
    running = []

    def start(*processes, hangup='SIG_DFL', environment=None, **patience):
        running.append(Supervised(processes, patience, hangup, environment or {}, mark))
        return running[-1]

    yield start
    for supervised in running:
        supervised.process.kill()
        supervised.process.communicate()
