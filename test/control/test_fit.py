"""Which policies lead an arm, and what they see of it."""

import dataclasses

from mher_ros.control.fit import check_fit, FitError
from mher_ros.control.observation import Observer
from mher_ros.interface import Field
from mher_ros.tasks import make
import numpy as np
import pytest


@pytest.fixture(scope='module')
def fetch():
    return make('fetch_reach').interface


@pytest.fixture(scope='module')
def sawyer():
    return make('sawyer_reach').interface


def changed(fields, index, **values):
    """Return fields with one of them changed."""
    fields = list(fields)
    fields[index] = dataclasses.replace(fields[index], **values)
    return tuple(fields)


def seen_by(interface, position, velocity):
    """Return what a policy sees of a tool that is where its set-point is."""
    tool = np.array(position), np.array(velocity)
    return Observer(interface)({'setpoint': tool, 'measured': tool})


@pytest.mark.parametrize('name', ['fetch_reach', 'sawyer_reach'])
def test_policies_of_the_papers_tasks_declare_that_they_see_the_set_point(name):
    assert Observer(make(name).interface).sources == ('setpoint',)


def test_each_field_comes_from_its_source(fetch):
    fields = changed(fetch.observation, 0, source='measured')
    interface = dataclasses.replace(fetch, observation=fields)
    observer = Observer(interface)
    assert observer.sources == ('measured', 'setpoint')
    still = np.zeros(3)
    seen = observer({'measured': (np.full(3, 7.0), still), 'setpoint': (np.ones(3), still)})
    np.testing.assert_array_equal(seen[:3], (7.0, 1.0, 1.0))


@pytest.mark.parametrize('name', ['fetch_reach', 'sawyer_reach'])
def test_the_policy_sees_what_it_was_trained_on_to_the_bit(name):
    task = make(name)
    task.reset(seed=0)
    observer, rng = Observer(task.interface), np.random.default_rng(0)
    for _ in range(20):
        trained = task.step(rng.uniform(-1, 1, task.action_space.shape).astype(np.float32))[0]
        seen = trained['observation'].copy()
        positions, velocities = task.joint_state()
        position, velocity = task._kinematics.position_and_velocity(positions, velocities)
        for index, field in enumerate(task.interface.observation):
            if 'finger' in field.name:
                seen[index] = field.nominal
        np.testing.assert_array_equal(observer({'setpoint': (position, velocity)}), seen)


def test_fields_are_filled_by_name(fetch):
    order = (7, 2, 3, 0, 1, 5)
    index = (0, 1, 2)
    fields = tuple(fetch.observation[entry] for entry in order)
    fields = (*fetch.observation[:3], fields[0], fields[2], fields[5])
    interface = dataclasses.replace(fetch, observation=fields, achieved_index=index)
    seen = seen_by(interface, (1.0, 2.0, 3.0), (10.0, 20.0, 30.0))
    np.testing.assert_allclose(seen, (1.0, 2.0, 3.0, 1.2, 0.0, 0.4))


def test_what_an_arm_does_not_have_takes_its_nominal_value(fetch):
    interface = dataclasses.replace(fetch, observation=changed(fetch.observation, 3, nominal=0.05))
    seen = seen_by(interface, np.ones(3), np.ones(3))
    assert seen[3] == 0.05
    assert seen[4] == 0.0


def test_velocities_in_plain_units_are_taken_as_they_are(fetch):
    interface = dataclasses.replace(fetch, observation=changed(fetch.observation, 5, unit='m/s'))
    seen = seen_by(interface, np.zeros(3), (0.3, 0.3, 0.3))
    np.testing.assert_allclose(seen[5:8], (0.3, 0.012, 0.012))


def test_each_observation_is_its_own(sawyer):
    observer = Observer(sawyer)
    first = observer({'setpoint': (np.zeros(3), np.zeros(3))})
    observer({'setpoint': (np.ones(3), np.zeros(3))})
    np.testing.assert_array_equal(first, 0.0)


@pytest.mark.parametrize('task', ['point2d_large', 'point2d_four_room'])
def test_a_policy_for_a_point_in_a_plane_is_refused(task):
    with pytest.raises(FitError, match=f'{task} cannot move an arm: .*got displacement'):
        Observer(make(task).interface)


def test_a_policy_for_torques_is_refused():
    with pytest.raises(FitError, match='expected actions that mean tool_disp.*got joint_torque'):
        check_fit(make('reacher').interface)


def wrongs(fetch):
    observation, action = fetch.observation, fetch.action
    return {
        'unknown field': (
            {'observation': (*observation, Field('object_position_x', 'm'))},
            r'observation of any of tool_position_x.*got object_position_x',
        ),
        'unit of a position': (
            {'observation': changed(observation, 1, unit='mm')},
            'tool_position_y in m, got mm',
        ),
        'unit of a velocity': (
            {'observation': changed(observation, 5, unit='m/s * 0.02 s')},
            r'tool_velocity_x in m/s or m/s \* 0.04 s, got m/s \* 0.02 s',
        ),
        'unit of a finger': (
            {'observation': changed(observation, 3, unit='rad')},
            'right_finger_position in m, got rad',
        ),
        "unit of a finger's velocity": (
            {'observation': changed(observation, 9, unit='rad/s')},
            'left_finger_velocity in m/s or .*, got rad/s',
        ),
        'nominal value': (
            {'observation': changed(observation, 3, nominal=float('nan'))},
            'a finite nominal right_finger_position, got nan',
        ),
        'field twice': (
            {'observation': changed(observation, 4, name='right_finger_position')},
            'each field of the observation once',
        ),
        'position achieved': (
            {'achieved_index': (5, 6, 7)},
            'as what is achieved, got tool_velocity_x',
        ),
        'goal observed': ({'goal_index': (5, 6, 7)}, 'an observation without the goal'),
        'goal in a plane': (
            {
                'goal': fetch.goal[:2],
                'achieved_index': (0, 1),
                'goal_low': fetch.goal_low[:2],
                'goal_high': fetch.goal_high[:2],
            },
            'a goal of tool_position_x, .* got tool_position_x in m, tool_position_y in m$',
        ),
        'unit of a goal': ({'goal': changed(fetch.goal, 0, unit='cm')}, 'a goal of'),
        'order of the action': (
            {'action': (action[1], action[0], *action[2:])},
            'expected tool_target_x in m .* got tool_target_y',
        ),
        'unit of the action': (
            {'action': changed(action, 2, unit='rad')},
            'expected tool_target_z in m .* got tool_target_z in rad',
        ),
        'action without effect': ({'action': changed(action, 0, scale=0.0)}, 'scale above 0'),
        'action reversed': ({'action': changed(action, 0, scale=-0.05)}, 'scale above 0'),
        'action that is NaN': (
            {'action': changed(action, 0, scale=float('nan'))},
            'scale above 0',
        ),
        'too few actions': ({'action': action[:2]}, 'an action of tool_target_x'),
        'gripper that moves': (
            {'action': changed(action, 3, scale=0.1)},
            'moves the tool only.*got gripper with a scale of 0.1',
        ),
        'no period': ({'control_period': float('nan')}, 'control period of 0.005 to 1.0 s'),
        'short period': ({'control_period': 1e-4}, 'control period of 0.005 to 1.0 s'),
        'long period': ({'control_period': 3.0}, 'control period of 0.005 to 1.0 s'),
    }


@pytest.mark.parametrize('what', wrongs(make('fetch_reach').interface))
def test_a_policy_is_refused_for_its(what, fetch):
    values, text = wrongs(fetch)[what]
    if 'control_period' in values:
        values['observation'] = tuple(
            dataclasses.replace(field, unit='m/s') if '/s' in field.unit else field
            for field in fetch.observation
        )
    with pytest.raises(FitError, match=text):
        Observer(dataclasses.replace(fetch, **values))


def test_policies_for_both_arms_fit(fetch, sawyer):
    check_fit(fetch)
    check_fit(sawyer)
