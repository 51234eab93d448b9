"""What a policy file is worth, on the task that its contract describes."""

import dataclasses

from mher_ros.policy import load, PolicyFileError
from mher_ros.policy.evaluation import (
    evaluate_policy,
    evaluation_lines,
    EVALUATION_STREAM,
    make_task,
)
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.tracker import TrackerOptions
from mher_ros.tasks.rollouts import episode_seed, Evaluator
from proportional_policy import write_proportional_policy
import pytest


@pytest.fixture
def policy(exported):
    return load(exported.path)


@pytest.fixture
def promising(policy):
    """Return a function that gives the policy another contract."""

    def change(training=None, **interface):
        policy.contract = dataclasses.replace(
            policy.contract,
            interface=dataclasses.replace(policy.interface, **interface),
            training=policy.contract.training if training is None else training,
        )
        return policy

    return change


def test_task_is_the_one_of_the_contract(policy):
    assert make_task(policy).interface == policy.interface


def test_task_takes_the_options_the_policy_was_trained_with(promising):
    training = {'config': {'task': {'threshold': 0.02, 'episode_steps': 30}}}
    policy = promising(training, success_threshold=0.02, episode_steps=30)
    assert make_task(policy).interface == policy.interface


@pytest.mark.parametrize('training', [{}, {'config': None}, {'config': {'task': [1]}}])
def test_contract_that_does_not_tell_the_options_means_the_usual_ones(promising, training):
    policy = promising(training)
    assert make_task(policy).interface == policy.interface


def test_workspace_may_differ_by_rounding_and_no_more(promising, exported):
    low = exported.contract.interface.goal_low
    nearly = tuple(value + 1e-9 for value in low)
    assert make_task(promising(goal_low=nearly)).interface.goal_low == low
    with pytest.raises(PolicyFileError, match='another fetch_reach: expected goal_low'):
        make_task(promising(goal_low=tuple(value + 1e-3 for value in low)))


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('success_threshold', 0.1),
        ('episode_steps', 50),
        ('control_period', 0.05),
        ('action_meaning', 'joint_torque'),
        ('frame', 'base_link'),
        ('achieved_index', (1, 2, 3)),
    ],
)
def test_policy_for_another_variant_of_the_task_is_refused(promising, key, value):
    with pytest.raises(PolicyFileError, match=f'another fetch_reach: expected {key} .*, got'):
        make_task(promising(**{key: value}))


def test_policy_for_an_unknown_task_is_refused(promising):
    with pytest.raises(PolicyFileError, match="unknown.*'juggling'"):
        make_task(promising(task='juggling'))


def test_policy_trained_with_an_option_that_is_gone_is_refused(promising):
    with pytest.raises(PolicyFileError, match="unknown key 'wind'"):
        make_task(promising({'config': {'task': {'wind': 3.0}}}))


def test_errors_in_metres_are_given_in_millimetres(policy):
    result = evaluate_policy(policy, episodes=3, seed=7, workers=1)
    seeds = [episode_seed(7, EVALUATION_STREAM, index) for index in range(3)]
    plain = Evaluator('fetch_reach', workers=1).run(policy, seeds).summary()
    assert result == {
        'task': 'fetch_reach',
        'seed': 7,
        'goals': 3,
        'success_rate': plain['success_rate'],
        'mean_error_mm': pytest.approx(1000 * plain['mean_error']),
        'median_error_mm': pytest.approx(1000 * plain['median_error']),
        'p95_error_mm': pytest.approx(1000 * plain['p95_error']),
        'median_steps_to_reach': plain['median_steps_to_reach'],
        'motion_at_goal_mm': pytest.approx(1000 * plain['motion_at_goal']),
    }


def test_figures_become_lines_for_people():
    figures = {'goals': 4, 'success_rate': 0.125, 'median_steps_to_reach': None}
    errors = {'mean_error': 12.345, 'median_error': 10.0, 'p95_error': 30.0, 'motion_at_goal': 0.5}
    in_millimetres = {f'{key}_mm': value for key, value in errors.items()}
    values = [line[28:].strip() for line in evaluation_lines({**figures, **in_millimetres})]
    assert values == ['4', '12.5 %', '12.3 mm', '10 mm', '30 mm', 'none reached', '0.5 mm']
    figures['median_steps_to_reach'] = 17.5
    values = [line[28:].strip() for line in evaluation_lines({**figures, **errors})]
    assert values == ['4', '12.5 %', '12.3', '10', '30', '17.5', '0.5']


def test_a_policy_with_a_measured_pose_is_evaluated_on_the_arm_of_its_training(tmp_path):
    tracker = {'camera_turn': [0.0, 0.0, 90.0], 'link_error': 0.03}
    options = ReachOptions(
        20,
        0.05,
        robot='ur5e',
        tool_pose='topic',
        tracker=TrackerOptions(camera_turn=(0.0, 0.0, 90.0), link_error=0.03),
    )
    stored = {'task': {'robot': 'ur5e', 'tool_pose': 'topic', 'episode_steps': 20}}
    stored['task'] |= {'threshold': 0.05, 'tracker': tracker}
    policy = load(write_proportional_policy(tmp_path / 'policy.onnx', 'reach', options))
    policy.contract = dataclasses.replace(policy.contract, training={'config': stored})
    assert make_task(policy).options == options


@pytest.mark.parametrize('action', ['joint', 'tool'])
def test_a_policy_is_not_evaluated_with_other_obstacles_than_it_was_trained_with(tmp_path, action):
    robot = tmp_path / 'mine.yaml'
    source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    robot.write_text(source)
    options = ReachOptions(robot=str(robot), action=action)
    policy = load(write_proportional_policy(tmp_path / 'a.onnx', 'reach', options))
    training = {'config': {'task': dataclasses.asdict(options)}}
    policy.contract = dataclasses.replace(policy.contract, training=training)
    assert make_task(policy).interface == policy.interface
    wall = '{shape: box, position: [0.5, 0.0, 0.1], size: [0.05, 0.2, 0.2]}'
    robot.write_text(f'{source}\nscene: {{wall: {wall}}}\n')
    with pytest.raises(PolicyFileError, match='another reach: .*no obstacles there, obstacles'):
        make_task(policy)
