"""The contract's way into JSON and back, and what it refuses on either."""

import dataclasses
import json

from mher_ros.interface import Field, TaskInterface, TrainedArm
from mher_ros.policy import Contract, PolicyFileError
from mher_ros.policy.contract import FORMAT_VERSION
import numpy as np
import pytest

CONTRACT = Contract(
    TaskInterface(
        task='arm',
        observation=(
            *(Field(f'tool_position_{axis}', 'm') for axis in 'xy'),
            Field('finger', 'm', nominal=0.02),
            *(Field(f'goal_{axis}', 'm') for axis in 'xy'),
        ),
        goal=tuple(Field(f'tool_position_{axis}', 'm') for axis in 'xy'),
        action=(Field('tool_x', 'm', scale=0.05), Field('gripper', '1', scale=0.0)),
        action_meaning='tool_displacement',
        frame='world',
        control_period=0.04,
        episode_steps=50,
        goal_low=(-1.0, 0.5),
        goal_high=(1.0, 1.5),
        success_threshold=0.05,
        achieved_index=(0, 1),
        goal_index=(3, 4),
    ),
    training={'algorithm': 'mher', 'config': {'hidden': [256, 256]}, 'preset': None},
    evaluation={'success_rate': 0.99},
)


def broken(*keys, value):
    """Return the contract's JSON with the entry at ``keys`` replaced."""
    values = json.loads(CONTRACT.to_json())
    inner = values
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return json.dumps(values)


def test_contract_comes_back_from_json_as_it_was():
    assert Contract.from_json(CONTRACT.to_json()) == CONTRACT


ARM = TrainedArm('ur5e', ('elbow', 'wrist'), ((0.1, 0.2, 0.3), (0.0, -0.5, 1.0)), 'a1')


def test_the_arm_of_joint_actions_comes_back():
    interface = dataclasses.replace(CONTRACT.interface, arm=ARM)
    contract = dataclasses.replace(CONTRACT, interface=interface)
    assert Contract.from_json(contract.to_json()) == contract


@pytest.mark.parametrize(
    ('changes', 'text'),
    [
        ({'robot': ''}, 'interface.arm.robot: expected a text'),
        ({'scene': None}, 'interface.arm.scene: expected a digest'),
        ({'tool_samples': []}, 'interface.arm.tool_samples: expected positions'),
        ({'tool_samples': [[1.0, 2.0]]}, r'tool_samples\[0\]: expected 3 numbers, x, y and z'),
        ({'tool_samples': [[1.0, 2.0, True]]}, r'tool_samples\[0\]\[2\]: expected a number'),
        ({'joints': 6}, 'interface.arm.joints: expected names'),
        ({'joints': []}, 'interface.arm.joints: expected names'),
        ({'joints': ['']}, r'interface.arm.joints\[0\]: expected a text'),
        ({'axes': 6}, 'interface.arm: unknown axes'),
    ],
)
def test_an_arm_that_is_wrong_is_refused(changes, text):
    values = {**dataclasses.asdict(ARM), **changes}
    with pytest.raises(PolicyFileError, match=text):
        Contract.from_json(broken('interface', 'arm', value=values))


def test_contract_without_evaluation_comes_back():
    contract = dataclasses.replace(CONTRACT, evaluation={})
    assert Contract.from_json(contract.to_json()) == contract


def test_numbers_of_numpy_become_plain_ones():
    contract = dataclasses.replace(
        CONTRACT, evaluation={'rate': np.float32(0.5), 'goals': np.int64(3), 'all': np.True_}
    )
    back = Contract.from_json(contract.to_json())
    assert back.evaluation == {'rate': 0.5, 'goals': 3, 'all': True}


def test_whole_numbers_are_read_as_floats_where_floats_are_meant():
    back = Contract.from_json(broken('interface', 'control_period', value=1))
    assert type(back.interface.control_period) is float


@pytest.mark.parametrize(
    ('keys', 'value', 'message'),
    [
        (['training'], [], 'training: expected an object, got []'),
        (['evaluation'], None, 'evaluation: expected an object, got None'),
        (['evaluation', 'success_rate'], float('nan'), 'success_rate: expected a finite number'),
        (['training', 'config', 'hidden', 1], float('inf'), 'config.hidden[1]: expected a finite'),
        (['training', 'seed'], 10**400, 'training.seed: expected a finite number'),
        (['more'], 1, 'contract: unknown more; the keys are evaluation, format_version'),
        (['interface'], 'fetch', "interface: expected an object, got 'fetch'"),
        (['interface', 'colour'], 1, 'interface: unknown colour; the keys are achieved_index'),
        (['interface', 'task'], '', "interface.task: expected a text, got ''"),
        (['interface', 'frame'], 3, 'interface.frame: expected a text, got 3'),
        (['interface', 'action_meaning'], None, 'interface.action_meaning: expected a text'),
        (['interface', 'action_meaning'], 'magic', 'action_meaning: expected one of displacement'),
        (['interface', 'observation'], {}, 'interface.observation: expected a list of fields'),
        (['interface', 'goal'], [], 'interface.goal: expected a list of fields, got []'),
        (['interface', 'action', 1], 'x', "interface.action[1]: expected an object, got 'x'"),
        (['interface', 'action', 1, 'axis'], 2, 'interface.action[1]: unknown axis'),
        (['interface', 'action', 1], {'name': 'gripper', 'unit': '1'}, 'lacks nominal, scale'),
        (['interface', 'action', 0, 'scale'], '0.05', 'action[0].scale: expected a number'),
        (
            ['interface', 'action', 0, 'scale'],
            True,
            'action[0].scale: expected a number, got True',
        ),
        (['interface', 'observation', 2, 'nominal'], None, 'observation[2].nominal: expected a'),
        (['interface', 'observation', 2, 'unit'], 1, 'observation[2].unit: expected a text'),
        (['interface', 'action', 0, 'name'], 'gripper', 'action: expected names that differ'),
        (['interface', 'control_period'], 0, 'control_period: expected a number above 0, got 0'),
        (['interface', 'success_threshold'], -0.1, 'success_threshold: expected a number above 0'),
        (['interface', 'success_threshold'], float('nan'), 'success_threshold: expected a finite'),
        (['interface', 'orientation_threshold'], 4.0, 'orientation_threshold: expected an angle'),
        (['interface', 'orientation_threshold'], -0.1, 'orientation_threshold: expected an angle'),
        (['interface', 'orientation_threshold'], 0.2, 'goal: expected a position and tool_x_axis'),
        (['interface', 'episode_steps'], 0, 'episode_steps: expected a whole number above 0'),
        (['interface', 'episode_steps'], 50.0, 'episode_steps: expected a whole number above 0'),
        (['interface', 'goal_low'], [0], 'goal_low: expected 2 numbers, one for each entry of'),
        (['interface', 'goal_high'], 'ab', 'goal_high: expected 2 numbers, one for each entry of'),
        (['interface', 'goal_high', 1], float('inf'), 'goal_high[1]: expected a finite number'),
        (['interface', 'goal_high', 1], 0.5, 'goal_high[1]: expected more than 0.5, got 0.5'),
        (['interface', 'achieved_index'], [], 'achieved_index: expected 2 entries, got []'),
        (
            ['interface', 'achieved_index'],
            [4, 5],
            'expected 2 successive entries of an observation',
        ),
        (['interface', 'achieved_index'], [-1, 0], 'of an observation of 5, got [-1, 0]'),
        (['interface', 'achieved_index'], [0, 2], 'achieved_index: expected 2 successive entries'),
        (['interface', 'achieved_index'], [0, True], 'achieved_index: expected 2 successive'),
        (['interface', 'goal_index'], [3], 'goal_index: expected 2 successive entries'),
        (['interface', 'goal_index'], None, 'goal_index: expected 2 successive entries'),
    ],
)
def test_entry_that_does_not_fit_is_named(keys, value, message):
    with pytest.raises(PolicyFileError) as error:
        Contract.from_json(broken(*keys, value=value))
    assert message in str(error.value)


@pytest.mark.parametrize('key', ['interface', 'training', 'evaluation'])
def test_missing_entry_is_named(key):
    values = json.loads(CONTRACT.to_json())
    del values[key]
    with pytest.raises(PolicyFileError, match=f'contract: lacks {key}'):
        Contract.from_json(json.dumps(values))


@pytest.mark.parametrize('version', [FORMAT_VERSION + 1, 0, '1', 1.0, True, None])
def test_other_version_is_told_before_anything_else(version):
    text = json.dumps({'format_version': version, 'unheard': 'of'})
    with pytest.raises(PolicyFileError, match='expected format version 4, got') as error:
        Contract.from_json(text)
    assert repr(version) in str(error.value)


def test_what_to_do_with_a_file_of_an_older_version_is_told():
    with pytest.raises(PolicyFileError, match='got 3, of an older mher_ros: .*mher export RUN'):
        Contract.from_json(json.dumps({'format_version': 3}))


def test_missing_version_is_told():
    with pytest.raises(PolicyFileError, match='expected format version 4, got None'):
        Contract.from_json('{}')


@pytest.mark.parametrize('text', ['', 'not JSON', '{"format_version": 1', '[' * 100_000])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(PolicyFileError, match='contract: expected JSON'):
        Contract.from_json(text)


def test_json_that_is_no_object_is_refused():
    with pytest.raises(PolicyFileError, match='contract: expected an object, got 3'):
        Contract.from_json('3')


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'training': {'folder': object()}}, 'expected plain JSON values; got object'),
        ({'training': {'rate': float('nan')}}, 'training.rate: expected a finite number'),
        ({'format_version': 1}, 'expected format version 4, got 1'),
    ],
)
def test_contract_that_could_not_be_read_is_not_written(change, message):
    with pytest.raises(PolicyFileError, match=message):
        dataclasses.replace(CONTRACT, **change).to_json()


def test_interface_that_could_not_be_read_is_not_written():
    interface = dataclasses.replace(CONTRACT.interface, goal_low=(-1.0, 2.0))
    with pytest.raises(PolicyFileError, match='goal_high'):
        dataclasses.replace(CONTRACT, interface=interface).to_json()
