"""Which arguments of a launch file are refused, and what it starts; needs no launch."""

from mher_ros.options import OptionError
from mher_ros.ros.bringup.launch_files import (
    argument_rows,
    check_arguments,
    choose_nodes,
    is_launched,
    resembling,
)
import pytest

NAMES = ['robot', 'speed', 'rviz']


@pytest.mark.parametrize(
    ('command', 'launched'),
    [
        (('ros2', 'launch', 'mher_ros', 'deploy.launch.py', 'robot:=ur5e'), True),
        (('ros2', 'launch', '{file}'), True),
        (('ros2', 'launch', 'their_arm', 'deploy.launch.py'), False),
        (('ros2', 'launch', 'mher_ros', 'train_sim.launch.py'), False),
        (('ros2', 'launch', '/elsewhere/deploy.launch.py'), False),
        (('pytest',), False),
    ],
)
def test_a_file_is_launched_itself_or_included_in_another(tmp_path, command, launched):
    file = tmp_path / 'deploy.launch.py'
    file.touch()
    assert is_launched(str(file), [word.format(file=file) for word in command]) is launched


def test_an_argument_that_is_not_declared_is_refused():
    check_arguments('deploy', ['robot:=ur5e', 'speed:=0.1', 'launch-prefix:=gdb'], NAMES)
    with pytest.raises(OptionError, match="deploy has no argument 'sped'; it has .*speed"):
        check_arguments('deploy', ['robot:=ur5e', 'sped:=0.05'], NAMES)


def test_among_arguments_of_others_a_misspelt_one_is_found_by_its_likeness():
    others = ['robot', 'robot_ip', 'use_mock_hardware', 'sped', 'rvis']
    assert resembling(others, NAMES) == [('sped', 'speed')]


class Choice:
    """What a launch file chooses to start with these arguments on the command line."""

    def __init__(self, name, given, included=False):
        defaults = {row['name']: row['default'] for row in argument_rows(name)}
        command = None if included else [f'{key}:={value}' for key, value in given.items()]
        self.warnings = []
        nodes, self.ends_all = choose_nodes(
            name, {**defaults, **given}, command, self.warnings.append
        )
        self.nodes = {node.name: node for node in nodes}


def test_a_misspelt_argument_of_a_launch_is_refused_and_of_another_launch_file_reported():
    given = {'speed': '0.05', 'sped': '0.05', 'robot_ip': '10.0.0.1'}
    with pytest.raises(OptionError, match='sped'):
        Choice('deploy_sim', {'sped': '0.05'})
    included = Choice('deploy_sim', given, included=True)
    (warning,) = included.warnings
    assert 'sped' in warning
    assert included.nodes['policy_node'].parameters['speed'] == 0.05


def test_the_launch_of_others_does_not_end_with_ours_unless_they_ask_for_it():
    assert Choice('train_sim', {}).ends_all
    assert Choice('train_sim', {'end_all': 'false'}).ends_all
    assert not Choice('train_sim', {}, included=True).ends_all
    assert Choice('train_sim', {'end_all': 'true'}, included=True).ends_all


def test_without_rviz2_its_window_is_left_out_with_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    choice = Choice('deploy_sim', {'rviz': 'true'})
    assert [*choice.nodes] == ['sim_node', 'policy_node']
    (warning,) = choice.warnings
    assert 'rviz2' in warning
    program = tmp_path / 'lib' / 'rviz2' / 'rviz2'
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    choice = Choice('deploy_sim', {'rviz': 'true'})
    assert [*choice.nodes] == ['sim_node', 'policy_node', 'rviz']
    assert not choice.warnings
