"""What an arm's YAML file may say, and how it is told what is wrong."""

import dataclasses
import os
import time

from mher_ros.errors import MherError
from mher_ros.robots.robot import arm_names, load_robot, robot_names, RobotError
import pytest
import yaml

LEAST = {
    'model': 'arm.urdf',
    'tool_frame': 'tip',
    'joints': ['shoulder', 'elbow'],
    'output': 'twist',
}


@pytest.fixture
def load(tmp_path):
    """Return a function that reads the least file with some keys changed."""

    def read(**changes):
        path = tmp_path / 'mine.yaml'
        path.write_text(yaml.safe_dump({**LEAST, **changes}))
        return load_robot(path)

    return read


def test_the_arms_come_with_the_package():
    assert {*arm_names()} == {'fetch', 'kinova', 'panda', 'sawyer', 'so101', 'ur10', 'ur5e'}
    assert {*robot_names()} == {*arm_names(), 'fetch_wall'}
    for name in robot_names():
        assert load_robot(name).name == name
        assert load_robot(name).description


def test_four_keys_are_enough(load):
    robot = load()
    assert robot.name == 'mine'
    assert robot.joints == ('shoulder', 'elbow')
    assert (robot.speed, robot.acceleration, robot.command_rate) == (0.25, 1.0, 100.0)
    assert robot.reaction_time == 0.15
    assert robot.workspace.origin is None
    assert robot.workspace.scale == 1.0
    assert robot.box is None
    assert robot.base_frame == ''
    assert robot.topics.joint_states == 'joint_states'
    assert robot.simulated().model == 'arm.urdf'


def test_ranges_of_plants_replace_the_usual_ones(load):
    usual = load().randomisation
    assert usual.stiffness == (0.9, 1.1)
    given = load(randomise={'payload': [0, 3], 'state_delay': [0.01, 0.01]}).randomisation
    assert given == dataclasses.replace(usual, payload=(0.0, 3.0), state_delay=(0.01, 0.01))


@pytest.mark.parametrize('key', sorted(LEAST))
def test_a_key_that_is_needed_is_asked_for(load, key):
    with pytest.raises(RobotError, match=f'mine.yaml: {key} is needed'):
        load(**{key: None})


@pytest.mark.parametrize(
    ('changes', 'complaint'),
    [
        ({'jionts': []}, "unknown key 'jionts'; the keys are .*joints"),
        ({'topics': {'joint_state': 'x'}}, "unknown key 'topics.joint_state'.*joint_states"),
        ({'workspace': {'orgin': [0, 0, 0]}}, "unknown key 'workspace.orgin'"),
        ({'workspace': [1, 2, 3]}, r'workspace holds keys and values; got \[1, 2, 3\]'),
        ({'workspace': {'origin': [0, 0]}}, 'workspace.origin takes three finite numbers'),
        ({'workspace': {'origin': [0, 0, float('nan')]}}, 'three finite numbers'),
        ({'workspace': {'scale': 0}}, 'workspace.scale takes a finite number from 0.1 to 10'),
        ({'joints': 'shoulder'}, "joints takes a list of different names; got 'shoulder'"),
        ({'joints': []}, 'a list of different names'),
        ({'joints': ['a', 'a']}, 'a list of different names'),
        ({'output': 'torque'}, "output takes one of twist, .*; got 'torque'"),
        ({'output': ['twist']}, 'output takes one of'),
        ({'speed': '0.25 m/s'}, "speed takes a finite number from .*; got '0.25 m/s'"),
        ({'speed': True}, 'speed takes a finite number'),
        ({'speed': -1}, 'speed takes'),
        ({'command_rate': 0}, 'command_rate takes'),
        ({'reaction_time': -0.1}, 'reaction_time takes'),
        ({'reaction_time': 1.1}, 'reaction_time takes'),
        ({'model': 3}, 'model takes a text; got 3'),
        ({'home': {'shoulder': 0.1}}, r"home names every joint.*\['elbow'\] are missing"),
        ({'home': {'shoulder': 'x', 'elbow': 0}}, 'home.shoulder takes a finite number'),
        ({'joint_limits': {'knee': {'lower': 0}}}, "joint_limits are of shoulder, elbow; got 'kn"),
        ({'joint_limits': {'elbow': {'low': 0}}}, "unknown key 'joint_limits.elbow.low'"),
        ({'joint_limits': {'elbow': {'velocity': 0}}}, 'joint_limits.elbow.velocity takes'),
        ({'joint_limits': {'elbow': {'effort': 0}}}, 'joint_limits.elbow.effort takes'),
        ({'joint_limits': {'elbow': {'lower': 1, 'upper': 1}}}, 'lower is below upper'),
        ({'box': {'low': [0, 0, 0]}}, 'box.high is needed'),
        ({'randomise': {'mass': [0, 1]}}, "unknown key 'randomise.mass'; the keys are .*payload"),
        ({'randomise': {'payload': 1.0}}, r'randomise.payload takes two ascending numbers'),
        ({'randomise': {'payload': [1.0, 0.0]}}, r'from 0 to 20; got \[1.0, 0.0\]'),
        ({'randomise': {'payload': [0.0, 21.0]}}, r'randomise.payload takes .* from 0 to 20'),
        ({'randomise': {'payload': [-0.1, 1.0]}}, 'randomise.payload takes'),
        ({'randomise': {'payload': [0, 1, 2]}}, 'randomise.payload takes'),
        ({'randomise': {'payload': [False, True]}}, 'randomise.payload takes'),
        ({'randomise': {'payload': [0, float('inf')]}}, 'randomise.payload takes'),
        ({'randomise': {'stiffness': [0.0, 1.0]}}, 'randomise.stiffness takes .* from 0.6 to'),
        ({'randomise': {'command_delay': ['0', '1']}}, 'randomise.command_delay takes'),
        ({'randomise': {'lost_states': [float('nan'), 0]}}, 'randomise.lost_states takes'),
        ({'randomise': [1, 2]}, 'randomise holds keys and values'),
        ({'box': {'low': [0, 0, 0], 'high': [1, 0, 1]}}, 'box.low is below box.high'),
    ],
)
def test_a_wrong_value_is_refused_with_file_and_key(load, changes, complaint):
    with pytest.raises(RobotError, match=rf'mine\.yaml: .*{complaint}'):
        load(**changes)


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text(yaml.safe_dump(LEAST) + 'speed: 0.1\nspeed: 1.0\n')
    with pytest.raises(RobotError, match=r"mine\.yaml.* the key 'speed' twice(.|\n)*line 8"):
        load_robot(path)


@pytest.mark.parametrize('content', ['', '- a\n- b\n', 'a: [', '!!python/object:os.system {}'])
def test_a_file_that_is_no_mapping_is_refused(tmp_path, content):
    path = tmp_path / 'mine.yaml'
    path.write_text(content)
    with pytest.raises(RobotError, match=r'mine\.yaml'):
        load_robot(path)


HOSTILE = {
    'aliases': 'home: &a [x, x]\nbox: [*a, *a]',
    'an alias of itself': 'home: &a [*a]',
    'a billion laughs': 'a0: &a0 lol\n'
    + ''.join(f'a{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 10)}]\n' for n in range(1, 10)),
    'keys': '\n'.join(f'key{n}: {n}' for n in range(30_000)),
    'keys that fit': '\n'.join(f'k{n}:' for n in range(4500)),
    'text': f'description: {"x" * 20_000_000}',
    'brackets': f'home: {"[" * 5000}{"]" * 5000}',
    'braces': f'home: {"{" * 5000}',
    'dashes': f'home:\n  {"- " * 5000}',
    'question marks': '? ' * 5000,
    'digits': f'speed: {"9" * 400}',
    'digits in a vector': f'tool_offset: [0, 0, {"9" * 400}]',
    'too many digits': f'speed: {"9" * 5000}',
    'hexadecimal digits': f'speed: 0x{"f" * 900}',
    'sixties': f'speed: {":".join(["59"] * 300)}.5',
    'exponent': 'speed: 1.0e+999999999',
    'a tag': 'speed: !!int abc',
    'another tag': 'speed: !!timestamp abc',
    'an impossible date': 'speed: 2024-13-45',
    'a date': 'description: 2024-01-01',
    'an impossible time zone': 'speed: 2001-12-14 21:59:43.10 -99:99',
    'no digits': 'speed: 0b_',
    'list as a key': '? [a]\n: b',
    'surrogate': 'base_frame: "\\ud800"',
    'zero byte': 'joints: ["a\\0"]',
    'two documents': '---\na: 1',
    'Latin-1': b'description: \xe9t\xe9',
    'UTF-16': 'description: a'.encode('utf-16'),
    'control characters': b'description: \x01',
}


@pytest.mark.parametrize('name', HOSTILE)
def test_a_hostile_file_is_refused_in_no_time(tmp_path, name):
    path, content = tmp_path / 'mine.yaml', HOSTILE[name]
    least = {key: value for key, value in LEAST.items() if key != 'joints' or name != 'zero byte'}
    path.write_bytes(
        yaml.safe_dump(least).encode()
        + (content if isinstance(content, bytes) else content.encode())
    )
    began = time.process_time()
    with pytest.raises(RobotError, match=r'mine\.yaml') as told:
        load_robot(path)
    assert time.process_time() - began < 2.0
    assert len(str(told.value)) < 2000


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path):
    path = tmp_path / 'mine.yaml'
    os.mkfifo(path)
    with pytest.raises(RobotError, match='regular file'):
        load_robot(path)


@pytest.mark.parametrize('name', ['a', '/arm/joint_states', '~/state', 'arm_1/_hidden/x9'])
def test_a_topic_has_any_name_of_ros(load, name):
    assert load(topics={'joint_states': name}).topics.joint_states == name


@pytest.mark.parametrize(
    'name',
    [
        *('', ' ', '/', '~', '~x', 'a/', 'a//b', '//a', '1a', 'a/1b', 'a b', 'a-b', 'a.b', 'a__b'),
        *('é', 'a\nb', 'a' * 201, '{node}/x', 'rt~/a'),
    ],
)
def test_what_is_no_name_of_a_topic_is_refused(load, name):
    with pytest.raises(RobotError, match=r'topics\.joint_states takes'):
        load(topics={'joint_states': name})


def test_a_name_that_is_unknown_is_told_those_that_are_known():
    with pytest.raises(MherError, match="robot takes one of .*ur5e.*; got 'ur6'"):
        load_robot('ur6')


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RobotError, match=r'other\.yaml'):
        load_robot(tmp_path / 'other.yaml')


def test_an_arm_whose_model_comes_over_a_topic_needs_another_one_in_simulation(load):
    with pytest.raises(RobotError, match='simulation_model must name a file for this, got none'):
        load(model='robot_description').simulated()


def test_a_robot_cannot_be_changed(load):
    robot = load(home={'shoulder': 0.0, 'elbow': 1.0})
    with pytest.raises(dataclasses.FrozenInstanceError):
        robot.speed = 1.0
    with pytest.raises(TypeError):
        robot.home['elbow'] = 2.0


TAKEN = '{source: topic, topic: joint_states}'  # a topic of another type


def test_the_pose_of_the_tool_can_be_measured(tmp_path):
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    path = tmp_path / 'seen.yaml'
    path.write_text(f'{source}\ntool_pose: {{source: topic, topic: marker, frame: left_eye}}\n')
    pose = load_robot(path).tool_pose
    assert pose.is_tracked
    assert (pose.topic, pose.frame, pose.timeout) == ('marker', 'left_eye', 0.2)
    assert not load_robot('ur5e').tool_pose.is_tracked
    for wrong in ('{source: camera}', '{timeout: 0.0}', "{frame: ''}", '{axis: z}', TAKEN):
        path.write_text(f'{source}\ntool_pose: {wrong}\n')
        with pytest.raises(RobotError, match='tool_pose'):
            load_robot(path)
