"""Nodes as processes: how they end."""

import os
import signal
import subprocess
import sys

import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock

# glibc's `on_exit` hands the exit code to a function once Python is gone. That of wrong use, 2, is
# the number of SIGINT, too, so `raise` makes of it the Ctrl-C that comes last of all.
ENDING = """
import ctypes, sys
from mher_ros.ros.common.process import run_process
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


@pytest.mark.ros
@pytest.mark.parametrize('name', ['policy_node', 'sim_node', 'train_node', 'view_node'])
def test_what_is_no_argument_of_ros_is_refused(name):
    command = [sys.executable, '-m', 'mher_ros.ros', name, 'robot:=ur5e', '--ros-args']
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(f'{name}: ')
    assert "got 'robot:=ur5e'" in done.stderr


@pytest.mark.ros
def test_a_misspelt_parameter_of_a_launch_file_ends_the_node(tmp_path):
    # As launch_ros writes down the parameters of a node whose full name it does not know.
    file = tmp_path / 'launch_params_k3x_7q1w'
    file.write_text('/**:\n  ros__parameters:\n    robot: fetch\n    safety.leahs: 0.01\n')
    command = [sys.executable, '-m', 'mher_ros.ros', 'policy_node', '--ros-args']
    done = subprocess.run(
        [*command, '--params-file', str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "policy_node has no parameter 'safety.leahs'" in done.stderr


@pytest.mark.ros
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('node', ['policy_node', 'sim_node', 'train_node', 'view_node'])
def test_a_node_that_is_stopped_while_it_starts_ends_at_once(node, number):
    process = subprocess.Popen(
        [sys.executable, '-m', 'mher_ros.ros', node],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, 'PYTHONPROFILEIMPORTTIME': '1'},
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if 'mher_ros.errors' in line:  # the first that is imported once signals are handled
            break
    process.send_signal(number)
    said += process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    assert not any('Traceback' in line for line in said)
    assert not any(f'mher_ros.ros.{node}' in line for line in said)  # it did not go on


@pytest.mark.ros
@pytest.mark.parametrize('name', ['policy_node', 'sim_node', 'view_node'])
def test_simulated_time_can_be_chosen_and_left_while_a_node_runs(world, name):
    given = {'autostart': False} if name == 'policy_node' else {}
    node = world.node(name, **given, **({'port': 0} if name == 'view_node' else {}))
    peer = world.peer()
    client = peer.client(SetParameters, f'{name}/set_parameters')
    clock = peer.node.create_publisher(Clock, '/clock', 10)
    told = Clock()
    for value in (True, False, True, True, 3, False):
        request = SetParameters.Request()
        request.parameters = [Parameter('use_sim_time', value=value).to_parameter_msg()]
        (result,) = peer.call(client, request)[0].results
        assert result.successful == isinstance(value, bool)
        for seconds in (10, 20, 5, -1):  # on, back, and before 1970
            told.clock.sec = seconds
            clock.publish(told)
    peer.figures(name)
    assert node.stop() == 0
