"""The planar arm against Gymnasium's Reacher, on whose model it runs."""

import gymnasium
from mher_ros.tasks import make
import numpy as np
import pytest


@pytest.fixture
def task():
    return make('reacher')


@pytest.fixture
def shipped():
    env = gymnasium.make('Reacher-v5').unwrapped
    yield env
    env.close()


def test_observation_is_laid_out_as_in_the_reference(task):
    observation = task.reset(seed=0)[0]['observation']
    for _ in range(20):
        q, v = task.data.qpos[:2], task.data.qvel[:2]
        tip = task.data.body('fingertip').xpos
        expected = [*np.cos(q), *np.sin(q), *task.goal, *v, *tip[:2], 0.0]
        np.testing.assert_array_equal(observation, expected)
        observation = task.step([0.5, -0.7])[0]['observation']


def test_arm_moves_as_that_of_gymnasium(task, shipped):
    mine = task.reset(seed=1)[0]['observation']
    shipped.reset(seed=0)
    shipped.set_state(task.data.qpos.copy(), task.data.qvel.copy())
    for action in np.random.default_rng(0).uniform(-1, 1, (30, 2)).astype(np.float32):
        mine = task.step(action)[0]['observation']
        theirs = shipped.step(action)[0]
        # The rest of theirs is the way from the tip to the goal, the tip a moment late.
        np.testing.assert_allclose(mine[:8], theirs[:8], atol=1e-12)


def test_tip_position_is_that_of_the_two_links(task):
    task.reset(seed=2)
    for _ in range(10):
        observation, *_ = task.step([1.0, -0.5])
    first, second = task.data.qpos[:2]
    # Links of 0.1 m; the fingertip sits 0.01 m beyond the second.
    tip = 0.1 * np.exp(1j * first) + 0.11 * np.exp(1j * (first + second))
    np.testing.assert_allclose(observation['achieved_goal'], [tip.real, tip.imag], atol=1e-12)


def test_joints_start_near_zero_and_not_always_the_same(task):
    starts = []
    for seed in range(50):
        task.reset(seed=seed)
        starts.append([*task.data.qpos[:2], *task.data.qvel[:2]])
    reach = np.abs(starts).max(axis=0)
    assert (reach <= [0.1, 0.1, 0.005, 0.005]).all()
    assert (reach > [0.08, 0.08, 0.004, 0.004]).all()


def test_goals_fill_a_disc(task):
    radii = [np.linalg.norm(task.reset(seed=seed)[0]['desired_goal']) for seed in range(1000)]
    assert max(radii) < 0.2
    # Uniform over the disc: a quarter of the goals within half the radius.
    assert np.mean(np.array(radii) < 0.1) == pytest.approx(0.25, abs=0.05)


def test_target_of_the_model_stands_at_the_goal(task):
    task.reset(seed=0, options={'goal': [0.05, -0.12]})
    np.testing.assert_allclose(task.data.body('target').xpos[:2], [0.05, -0.12], atol=1e-12)


def test_goal_does_not_move_the_arm(task):
    paths = []
    for goal in ([0.1, 0.1], [-0.15, 0.02]):
        task.reset(seed=0, options={'goal': goal})
        paths.append([task.step([0.3, 0.8])[0]['achieved_goal'] for _ in range(50)])
    np.testing.assert_array_equal(*paths)


def test_another_goal_rewrites_only_the_entries_that_repeat_it(task):
    observation = task.reset(seed=0)[0]['observation']
    before = observation.copy()
    rewritten = task.interface.with_goal(observation, np.array([0.01, 0.02]))
    np.testing.assert_array_equal(observation, before)
    np.testing.assert_array_equal(rewritten[4:6], [0.01, 0.02])
    np.testing.assert_array_equal(np.delete(rewritten, (4, 5)), np.delete(before, (4, 5)))
    # The rewritten observation is the one the arm would have shown under that goal.
    other, _ = task.reset(seed=0, options={'goal': [0.01, 0.02]})
    np.testing.assert_array_equal(rewritten, other['observation'])
