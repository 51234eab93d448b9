"""Nodes as processes: how they end."""

import signal
import subprocess
import sys

import pytest

# glibc's `on_exit` hands the exit code to a function once Python is gone. That of wrong use, 2, is
# the number of SIGINT, too, so `raise` makes of it the Ctrl-C that comes last of all.
ENDING = """
import ctypes, sys
from mher_ros.ros.process import run_process
libc = ctypes.CDLL(None)
libc.on_exit(getattr(libc, 'raise'), None)
sys.exit(run_process('sim_node', ['sim_node', '--ros-args', '-p', 'task:=none']))
"""


@pytest.mark.ros
def test_a_ctrl_c_that_comes_too_late_does_not_change_how_a_node_has_ended():
    assert signal.SIGINT == 2
    done = subprocess.run([sys.executable, '-c', ENDING], capture_output=True, text=True)
    assert 'task takes one of' in done.stderr
    assert done.returncode == 2
