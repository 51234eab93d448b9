"""Systems started without `ros2 launch`: their commands, and the real nodes in the end."""

import json
import os
import signal
import subprocess
import sys

from mher_ros.errors import MherError
from mher_ros.ros.bringup.node_spec import NodeSpec, Role
from mher_ros.ros.bringup.processes import command_line, node_environment, run_bringup
import pytest
from tiny_runs import TINY

ECHO = """
import json, sys
import rclpy
from rclpy.node import Node
rclpy.init(args=sys.argv)
node = Node('unnamed', automatically_declare_parameters_from_overrides=True)
values = {name: node.get_parameter(name).value for name in json.loads(sys.argv[1])}
print(json.dumps([node.get_name(), values]))
"""


@pytest.mark.ros
def test_ros_reads_name_and_parameters_with_their_types():
    values = {
        **{'whole': 7, 'number': 0.5, 'large': 2**63 - 1, 'yes': True, 'no': False},
        **{'empty': '', 'digits': '1', 'truth': 'true', 'quote': "it's", 'spaces': ' a  b '},
        **{'odd': '-x: [#] é "%" :=', 'path': '/tmp/a b/run'},
    }
    node = NodeSpec('mher_ros', 'echo', 'echo_node', Role.MAIN, values, (json.dumps([*values]),))
    _, _, module, name, *rest = command_line(node)
    assert (module, name) == ('mher_ros.ros', 'echo')
    done = subprocess.run(
        [sys.executable, '-c', ECHO, *rest],
        capture_output=True,
        text=True,
        env=node_environment(),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ['echo_node', values]


def test_a_program_of_another_package_is_found_where_ros_installs_it(tmp_path, monkeypatch):
    program = tmp_path / 'lib' / 'rviz2' / 'rviz2'
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/elsewhere:{tmp_path}')
    node = NodeSpec('rviz2', 'rviz2', 'rviz', Role.OPTIONAL, arguments=('-d', 'a.rviz'))
    assert command_line(node) == [
        *(str(program), '-d', 'a.rviz'),
        *('--ros-args', '-r', '__node:=rviz'),
    ]


def test_all_goes_on_without_a_window_whose_program_is_not_installed(monkeypatch, capsys):
    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    monkeypatch.setenv('PATH', '')
    started = []

    def supervise(processes, *_):
        started.extend(process.name for process in processes)
        return 0

    monkeypatch.setattr('mher_ros.ros.bringup.processes.supervise', supervise)
    assert run_bringup('train_sim', {'rviz': True}) == 0
    assert started == ['sim_node', 'train_node']
    assert 'continuing without rviz: rviz2 was not found' in capsys.readouterr().err
    node = NodeSpec('rviz2', 'rviz2', 'rviz', Role.NEEDED)
    with pytest.raises(MherError, match='rviz2 was not found'):
        command_line(node)


def test_namespace_and_names_of_topics_are_told_as_ros_takes_them():
    node = NodeSpec(
        *('mher_ros', 'sim_node', 'sim', Role.MAIN),
        remappings=(('goal_pose', 'arm_goal'),),
        namespace='left/arm',
    )
    words = command_line(node)
    assert words[words.index('--ros-args') :] == [
        *('--ros-args', '-r', '__node:=sim', '-r', 'goal_pose:=arm_goal'),
        *('-r', '__ns:=/left/arm'),
    ]


def test_nodes_stay_on_this_machine_unless_told_otherwise(monkeypatch):
    key = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
    monkeypatch.delenv(key, raising=False)
    assert node_environment()[key] == 'LOCALHOST'
    monkeypatch.setenv(key, 'SUBNET')
    assert node_environment()[key] == 'SUBNET'


def test_nodes_print_at_once(monkeypatch):
    monkeypatch.delenv('PYTHONUNBUFFERED', raising=False)
    assert node_environment()['PYTHONUNBUFFERED'] == '1'


# The real nodes


@pytest.mark.ros
@pytest.mark.slow
def test_training_that_was_interrupted_goes_on_to_its_end(up, tmp_path, mark):
    folder = tmp_path / 'run'
    tiny = ' '.join(f'{key}={value}' for key, value in TINY.items())
    first = up('train_sim', 'task:=point2d_large', f'set:={tiny}', f'out:={folder}')
    first.wait_for(r'\[train_node\] .*point2d_large, mher, preset fast')
    first.signal(signal.SIGINT)
    assert first.end() == 0
    mark.wait_until_none_is_left()
    assert (folder / 'checkpoint').exists()

    second = up('train_sim', 'resume:=true', f'out:={folder}')
    second.wait_for(r'\[sim_node\]   .*point2d_large')
    second.wait_for('stopped after 160 steps')
    assert second.end() == 0
    mark.wait_until_none_is_left()
    assert (folder / 'policy.onnx').exists()


@pytest.mark.ros
def test_training_fails_with_the_arm_that_dies(up, tmp_path, mark):
    run = up('train_sim', 'task:=point2d_large', f'out:={tmp_path / "run"}')
    run.wait_for(r'\[train_node\] .*point2d_large, mher')
    (arm,) = (pid for pid, command in mark.processes().items() if 'sim_node' in command)
    os.kill(arm, signal.SIGKILL)
    run.wait_for(r'\[mher\] +sim_node was ended by SIGKILL, but is needed; stopping train_node')
    assert run.end() == 1
    mark.wait_until_none_is_left()
