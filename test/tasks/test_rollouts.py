"""Evaluations: many goals, in lockstep and over threads."""

import dataclasses

from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed, Evaluation, Evaluator
from mher_ros.tasks.task import TaskOptions
import numpy as np
import pytest

OPTIONS = TaskOptions(episode_steps=40, threshold=0.12)
GOALS = 30  # not a multiple of the goals that share a policy call
SEEDS = [episode_seed(1, 2, index) for index in range(GOALS)]


class RandomNetwork:
    """A small network, whose products depend on how many rows are multiplied at once."""

    def __init__(self, interface, seed=1):
        rng = np.random.default_rng(seed)
        n, m, k = (len(part) for part in (interface.observation, interface.goal, interface.action))
        self.first = rng.normal(size=(n + m, 64))
        self.second = rng.normal(size=(64, k))

    def __call__(self, observations, goals):
        inputs = np.concatenate((observations, goals), axis=-1)
        return np.tanh(np.tanh(inputs @ self.first) @ self.second).astype(np.float32)


def straight(observations, goals):
    """Walk the point straight to its goal."""
    return np.clip(goals - observations, -1.0, 1.0).astype(np.float32)


@pytest.fixture(scope='module')
def policy():
    return RandomNetwork(make('reacher', OPTIONS).interface)


@pytest.fixture(scope='module')
def evaluation(policy):
    return Evaluator('reacher', OPTIONS, workers=1).run(policy, SEEDS)


def assert_same(one, other):
    for field in dataclasses.fields(Evaluation):
        np.testing.assert_array_equal(
            getattr(one, field.name), getattr(other, field.name), err_msg=field.name
        )


@pytest.mark.parametrize('workers', [2, 3])
def test_result_does_not_depend_on_the_number_of_workers(policy, evaluation, workers):
    assert_same(Evaluator('reacher', OPTIONS, workers).run(policy, SEEDS), evaluation)


def test_result_does_not_depend_on_what_was_evaluated_before(policy, evaluation):
    evaluator = Evaluator('reacher', OPTIONS, workers=2)
    evaluator.run(RandomNetwork(make('reacher').interface, seed=2), [7, 8, 9])
    assert_same(evaluator.run(policy, SEEDS), evaluation)


def test_goals_stay_in_the_order_of_their_seeds(policy):
    # 60 goals make three chunks for two workers.
    seeds = [episode_seed(1, 3, index) for index in range(60)]
    together = Evaluator('reacher', OPTIONS, workers=2).run(policy, seeds)
    for first in (0, 25, 50):
        part = Evaluator('reacher', OPTIONS, workers=1).run(policy, seeds[first : first + 25])
        np.testing.assert_array_equal(together.final_errors[first : first + 25], part.final_errors)


def test_evaluation_is_that_of_single_episodes(policy, evaluation):
    task = make('reacher', OPTIONS)
    assert len(evaluation.final_errors) == GOALS
    for index, seed in enumerate(SEEDS):
        observation, _ = task.reset(seed=seed)
        path, reached = [], np.nan
        truncated = False
        while not truncated:
            action = policy(observation['observation'], observation['desired_goal'])
            observation, _, _, truncated, info = task.step(action)
            path.append(observation['achieved_goal'])
            if info['is_success'] and np.isnan(reached):
                reached = float(len(path))
        error = np.linalg.norm(path[-1] - observation['desired_goal'])
        box = np.max(path, axis=0) - np.min(path, axis=0)  # 40 steps of 0.02 s: the last second
        assert evaluation.final_errors[index] == pytest.approx(error, abs=1e-4)
        assert evaluation.successes[index] == info['is_success']
        np.testing.assert_equal(evaluation.steps_to_reach[index], reached)
        assert evaluation.motions_at_goal[index] == pytest.approx(np.linalg.norm(box), abs=1e-4)
    # The comparison saw goals that were reached, missed, and passed by.
    ever = np.isfinite(evaluation.steps_to_reach)
    assert 0 < evaluation.successes.sum() < ever.sum() < GOALS


def test_point_that_walks_straight_is_there_after_as_many_steps_as_it_must():
    evaluation = Evaluator('point2d_large').run(straight, SEEDS)
    task = make('point2d_large')
    for index, seed in enumerate(SEEDS):
        start, _ = task.reset(seed=seed)
        way = np.abs(start['desired_goal'] - start['achieved_goal'])
        steps = 1
        while np.linalg.norm(np.maximum(way - steps, 0.0)) > 1.0:
            steps += 1
        assert evaluation.steps_to_reach[index] == steps
    assert evaluation.success_rate == 1.0
    assert evaluation.final_error < 1e-6
    assert evaluation.motions_at_goal.max() < 1e-6


def test_motion_is_that_of_the_last_second():
    # A second is ten steps of the point; it walks away from the first corner all the time.
    away = np.array([0.5, 0.0], np.float32)
    options = make('point2d_large').options
    long_square = dataclasses.replace(options, box=100.0, episode_steps=30)
    evaluation = Evaluator('point2d_large', long_square).run(
        lambda observations, goals: np.tile(away, (len(observations), 1)), [0]
    )
    assert evaluation.motions_at_goal == pytest.approx([9 * 0.5])


def test_summary_of_hand_worked_figures():
    evaluation = Evaluation(
        final_errors=np.array([0.1, 0.3, 0.2, 1.4]),
        successes=np.array([True, False, True, False]),
        steps_to_reach=np.array([4.0, np.nan, 10.0, 6.0]),
        motions_at_goal=np.array([0.01, 0.02, 0.03, 0.5]),
    )
    assert evaluation.summary() == {
        'goals': 4,
        'success_rate': 0.5,
        'mean_error': pytest.approx(0.5),
        'median_error': pytest.approx(0.25),
        'p95_error': pytest.approx(0.3 + 0.85 * 1.1),
        'median_steps_to_reach': 6.0,
        'motion_at_goal': pytest.approx(0.025),
    }


def test_summary_has_angles_where_goals_have_an_orientation():
    figures = {
        'final_errors': np.array([0.1, 0.3]),
        'successes': np.array([True, False]),
        'steps_to_reach': np.array([4.0, np.nan]),
        'motions_at_goal': np.array([0.01, 0.02]),
    }
    summary = Evaluation(**figures, final_angles=np.array([0.1, 0.3])).summary()
    assert summary['median_angle'] == pytest.approx(0.2)
    assert summary['p95_angle'] == pytest.approx(0.29)
    assert summary.keys() - Evaluation(**figures).summary().keys() == {
        'median_angle',
        'p95_angle',
    }


def test_summary_has_no_steps_where_no_goal_was_reached():
    evaluation = Evaluation(
        final_errors=np.array([1.0, 2.0]),
        successes=np.array([False, False]),
        steps_to_reach=np.array([np.nan, np.nan]),
        motions_at_goal=np.array([0.0, 0.0]),
    )
    summary = evaluation.summary()
    assert summary['median_steps_to_reach'] is None
    assert summary['success_rate'] == 0.0


def test_evaluation_of_no_goals_is_refused(policy):
    with pytest.raises(ValueError, match='at least one goal'):
        Evaluator('reacher', OPTIONS).run(policy, [])


def test_error_of_the_policy_reaches_the_caller():
    def broken(observations, goals):
        raise ArithmeticError('broken')

    with pytest.raises(ArithmeticError, match='broken'):
        Evaluator('reacher', OPTIONS, workers=2).run(broken, SEEDS)


def test_seeds_of_episodes_differ_by_every_number_of_their_name():
    names = [
        (run, stream, index) for run in range(5) for stream in range(4) for index in range(50)
    ]
    assert len({episode_seed(*name) for name in names}) == len(names)
    assert episode_seed(1, 2, 3) == episode_seed(1, 2, 3)
