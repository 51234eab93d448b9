"""The supervisor in a process of its own, and small scripts that stand in for nodes."""

import json
import re
import subprocess
import sys

import pytest

DRIVER = """
import json, signal, sys
from mher_ros.ros.bringup.supervisor import Patience, Process, supervise
from mher_ros.ros.bringup.node_spec import Role
processes, patience, hangup = json.loads(sys.argv[1])
signal.signal(signal.SIGHUP, getattr(signal, hangup))
processes = [Process(name, command, Role[role]) for name, command, role in processes]
sys.exit(supervise(processes, patience=Patience(**patience)))
"""

# Says which signals arrive, and ends in good order on those named after the script.
NODE = """
import os, signal, sys
signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
print('pid', os.getpid(), flush=True)
while True:
    name = signal.Signals(signal.sigwait(signals)).name
    print('got', name, flush=True)
    if name in sys.argv[1].split(','):
        print('saved', flush=True)
        sys.exit(int(sys.argv[2]))
"""

# Writes a file when it is interrupted.
SAVING = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
print('pid', os.getpid())
signal.sigwait({signal.SIGINT})
pathlib.Path(sys.argv[1]).write_text('checkpoint')
"""

STUBBORN = """
import os, signal
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print('pid', os.getpid())
while True:
    signal.pause()
"""


def node(ends_on='SIGINT,SIGTERM', code=0):
    return [sys.executable, '-c', NODE, ends_on, str(code)]


def script(text, *arguments):
    return [sys.executable, '-uc', text, *arguments]


class Supervised:
    """The supervisor in a process of its own, as a person's shell would start it."""

    def __init__(self, processes, patience, hangup, environment, mark):
        arguments = json.dumps([[[n, c, r.name] for n, c, r in processes], patience, hangup])
        self.process = subprocess.Popen(
            [sys.executable, '-c', DRIVER, arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**mark.environment, **environment},
        )
        self.mark = mark
        self.pids = {}

    def read_until(self, wanted):
        """Return the lines up to the first that contains ``wanted``."""
        lines = []
        for line in self.process.stdout:
            lines.append(line.rstrip('\n'))
            if found := re.fullmatch(r'\[(\w+)\] +pid (\d+)\n', line):
                self.pids[found[1]] = int(found[2])
            if wanted in line:
                return lines
        pytest.fail(f'no {wanted!r} in {lines}: {self.process.stderr.read()}')

    def wait_until_up(self, count):
        while len(self.pids) < count:
            self.read_until('pid ')

    def end(self):
        """Return the exit code and the lines that were still to come."""
        out, error = self.process.communicate(timeout=60)
        assert error == ''
        self.mark.wait_until_none_is_left()
        return self.process.returncode, out.splitlines()
