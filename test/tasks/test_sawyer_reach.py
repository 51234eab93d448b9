"""The Sawyer arm, whose hand is led by a target."""

import subprocess
import sys

from mher_ros.tasks import make
import numpy as np
import pytest

LOW, HIGH = np.array((-0.2, 0.55, 0.05)), np.array((0.2, 0.75, 0.3))
START = np.array((0.0, 0.5, 0.02))


@pytest.fixture
def task():
    return make('sawyer_reach')


def target(task):
    return task.data.mocap_pos[0].copy()


def test_model_is_taken_without_importing_metaworld():
    code = (
        "import sys; from mher_ros.tasks import make; make('sawyer_reach').reset(seed=0); "
        "print(sorted({'metaworld', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ('[]\n', 0), done.stderr


def test_goals_are_drawn_from_the_box_of_the_paper(task):
    assert task.interface.goal_low == tuple(LOW)
    assert task.interface.goal_high == tuple(HIGH)


def test_hand_is_at_rest_on_its_target_after_reset(task):
    observation, _ = task.reset(seed=0)
    np.testing.assert_array_equal(target(task), START)
    np.testing.assert_allclose(observation['achieved_goal'], START, atol=0.01)
    assert np.abs(task.data.qvel).max() < 1e-3


def test_target_moves_by_the_scaled_action(task):
    task.reset(seed=0)
    for _ in range(3):  # away from the faces of the box
        task.step([0.0, 1.0, 1.0])
    before = target(task)
    task.step([0.5, -0.25, 1.0])
    np.testing.assert_allclose(target(task) - before, [0.01, -0.005, 0.02], atol=1e-9)
    assert {field.scale for field in task.interface.action} == {0.02}


@pytest.mark.parametrize('corner', [(1, 1, 1), (-1, 1, -1), (1, -1, 1), (-1, -1, -1)])
def test_target_is_kept_in_the_box_and_the_hand_follows_it(task, corner):
    task.reset(seed=0)
    for _ in range(30):
        observation, *_ = task.step(corner)
        assert (target(task) >= LOW).all()
        assert (target(task) <= HIGH).all()
    np.testing.assert_array_equal(target(task), np.where(np.array(corner) > 0, HIGH, LOW))
    np.testing.assert_allclose(observation['achieved_goal'], target(task), atol=0.02)


def test_every_goal_can_be_reached_by_walking_straight_to_it(task):
    for seed in range(5):
        observation, _ = task.reset(seed=seed)
        for _ in range(task.interface.episode_steps):
            way = observation['desired_goal'] - observation['achieved_goal']
            observation, _, _, _, info = task.step(way / 0.02)
        assert info['is_success']


def test_control_period_is_fifty_steps_of_two_milliseconds(task):
    task.reset(seed=0)
    before = task.data.time
    task.step(np.zeros(3))
    assert task.data.time - before == pytest.approx(0.1)
    assert task.interface.control_period == pytest.approx(0.1)
    assert task.model.opt.timestep == 0.002
