"""Which arguments of a launch file are refused, and when; needs no launch."""

from mher_ros.options import OptionError
from mher_ros.ros.bringup.launch_files import check_arguments, is_launched, resembling
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
