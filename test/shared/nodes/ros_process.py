"""A process whose lines a test reads, and which ends with it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

from fork_server import Fork
import pytest

NODE = [sys.executable, '-m', 'mher_ros.ros']
"""How the command of a node begins."""

PATIENCE = 120.0
"""Time within which anything awaited must happen [s]."""

STOPPING = 30.0
"""Time that a node has to end after SIGINT [s]."""


class Process:
    """A child whose lines are read as they come."""

    def __init__(self, command, environment, descriptors):
        read, stdin = os.pipe()
        stdout, write = os.pipe()
        stderr, write_errors = os.pipe()
        theirs = read, write, write_errors
        if command[: len(NODE)] == NODE:
            arguments = command[len(NODE) :]
            self._child = Fork(arguments[0], arguments, environment, theirs, descriptors)
        else:
            self._child = subprocess.Popen(
                command,
                stdin=read,
                stdout=write,
                stderr=write_errors,
                env=environment,
                pass_fds=descriptors,
            )
        for descriptor in theirs:
            os.close(descriptor)
        self._stdin = open(stdin, 'w')
        self.command, self.pid = command, self._child.pid
        self.lines, self.errors = [], []
        self._read = 0
        self._news = threading.Condition()
        self._readers = [
            threading.Thread(target=self._listen, args=(stream, lists), daemon=True)
            for stream, lists in (
                (open(stdout), (self.lines,)),
                (open(stderr), (self.lines, self.errors)),
            )
        ]
        for reader in self._readers:
            reader.start()

    def wait_for(self, pattern, patience=PATIENCE):
        """Return the next line that the pattern is found in."""
        end = time.monotonic() + patience
        with self._news:
            while True:
                while self._read < len(self.lines):
                    self._read += 1
                    if re.search(pattern, self.lines[self._read - 1]):
                        return self.lines[self._read - 1]
                assert time.monotonic() < end, f'no {pattern!r} after {patience} s in {self}'
                assert any(reader.is_alive() for reader in self._readers), f'{pattern!r}? {self}'
                self._news.wait(0.1)

    def tell(self, line):
        self._stdin.write(line + '\n')
        self._stdin.flush()

    def signal(self, number):
        self._child.send_signal(number)

    def kill(self):
        """End it as a crash would."""
        self._child.kill()
        self.end()

    def is_running(self):
        return self._child.poll() is None

    def end(self, patience=PATIENCE):
        """Return its exit code once it has ended by itself."""
        try:
            code = self._child.wait(patience)
        except subprocess.TimeoutExpired:
            pytest.fail(f'it goes on after {patience} s: {self}')
        for reader in self._readers:
            reader.join()
        return code

    def stop(self):
        """Return its exit code after SIGINT."""
        self.signal(signal.SIGINT)
        return self.end(STOPPING)

    def close(self):
        """Leave nothing behind; return what is wrong with how it ended, if anything."""
        wrong = ''
        if self.is_running():
            self.signal(signal.SIGINT)
            try:
                code = self._child.wait(STOPPING)
                wrong = f'ended with {code} after SIGINT' if code else ''
            except subprocess.TimeoutExpired:
                self._child.kill()
                wrong = f'did not end within {STOPPING} s after SIGINT'
        self.end()
        if any('Traceback' in line for line in self.lines):
            wrong = wrong or 'ended in a traceback'
        return f'{wrong}: {self}' if wrong else ''

    def __str__(self):
        return '\n'.join((' '.join(map(str, self.command)), *self.lines))

    def _listen(self, stream, lists):
        with stream:
            for line in stream:
                with self._news:
                    for lines in lists:
                        lines.append(line.rstrip('\n'))
                    self._news.notify_all()
