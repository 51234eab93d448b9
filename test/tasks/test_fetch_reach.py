"""The Fetch arm against the environment that Gymnasium-Robotics ships."""

import subprocess
import sys

import gymnasium
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.tasks import make
from mher_ros.tasks.fetch_reach import FetchReachOptions
import numpy as np
import pytest

SEEDS = (0, 1, 12345)


@pytest.fixture(scope='module')
def shipped():
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    env = gymnasium.make('FetchReach-v4').unwrapped
    yield env
    env.close()


@pytest.fixture
def ours():
    return make('fetch_reach')


def random_actions(seed, steps=50):
    """Return actions that also go beyond [-1, 1], where both sides must cut them."""
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (steps, 4)).astype(np.float32)


@pytest.mark.parametrize('seed', SEEDS)
def test_every_joint_moves_as_in_the_shipped_environment_to_the_bit(ours, shipped, seed):
    mine, _ = ours.reset(seed=seed)
    theirs, _ = shipped.reset(seed=seed)
    for action in (None, *random_actions(seed)):
        if action is not None:
            mine, reward, *_ = ours.step(action)
            theirs, their_reward, *_ = shipped.step(action)
            assert reward == their_reward
        np.testing.assert_array_equal(ours.data.qpos, shipped.data.qpos)
        np.testing.assert_array_equal(ours.data.qvel, shipped.data.qvel)
        assert ours.data.time == shipped.data.time
        assert mine.keys() == theirs.keys()
        for key in mine:
            np.testing.assert_array_equal(mine[key], theirs[key], err_msg=key)


def test_goals_and_the_way_there_are_those_of_the_shipped_environment(ours, shipped):
    for seed in range(20):
        np.testing.assert_array_equal(
            ours.reset(seed=seed)[0]['desired_goal'], shipped.reset(seed=seed)[0]['desired_goal']
        )
    # Also when the generator goes on from episode to episode.
    np.testing.assert_array_equal(
        ours.reset()[0]['desired_goal'], shipped.reset()[0]['desired_goal']
    )


def test_observed_tool_follows_from_joint_positions_and_velocities_alone(ours, shipped):
    kinematics = ToolKinematics(make('fetch_reach').model, site='robot0:grip')
    period = ours.interface.control_period
    for env in (ours, shipped):
        env.reset(seed=3)
        for action in random_actions(3):
            observation = env.step(action)[0]['observation']
            joints, velocities = env.data.qpos.copy(), env.data.qvel.copy()
            position, velocity = kinematics.position_and_velocity(joints, velocities)
            np.testing.assert_array_equal(position, observation[:3])
            np.testing.assert_array_equal(velocity * period, observation[5:8])


def test_velocities_are_declared_as_displacements_in_a_control_period(ours):
    assert ours.interface.control_period == pytest.approx(0.04)
    assert {field.unit for field in ours.interface.observation[5:]} == {'m/s * 0.04 s'}


def test_tool_moves_along_each_axis_of_the_action(ours):
    for axis in range(3):
        for sign in (1.0, -1.0):
            action = np.zeros(4)
            action[axis] = sign
            start = ours.reset(seed=0)[0]['achieved_goal']
            for _ in range(3):
                end = ours.step(action)[0]['achieved_goal']
            moved = (end - start) * sign
            assert moved[axis] > 0.04
            assert moved[axis] > 3.0 * np.abs(np.delete(moved, axis)).max()


def test_last_action_moves_nothing(ours):
    assert ours.interface.action[3].scale == 0.0
    paths = []
    for gripper in (-1.0, 1.0):
        ours.reset(seed=0)
        paths.append([ours.step([0.3, 0.2, 0.1, gripper])[0]['observation'] for _ in range(5)])
    np.testing.assert_array_equal(*paths)


def test_model_is_taken_without_importing_the_package_that_holds_it():
    code = (
        "import sys; from mher_ros.tasks import make; make('fetch_reach').reset(seed=0); "
        "print(sorted({'gymnasium_robotics', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ('[]\n', 0), done.stderr


def test_goals_inside_the_table_can_be_left_out():
    env = make('fetch_reach', FetchReachOptions(threshold=0.005, reachable_goals=True))
    goals = np.array([env.reset(seed=seed)[0]['desired_goal'] for seed in range(300)])
    low, high = env.interface.goal_low, env.interface.goal_high
    assert (goals >= low).all() and (goals <= high).all()
    assert goals[:, 2].min() == pytest.approx(low[2], abs=0.01)
    # The lowest can be reached, and lower ones not: there is the table.
    for goal, is_reached in (((1.34, 0.75, low[2]), True), ((1.34, 0.75, low[2] - 0.01), False)):
        assert go_to(env, np.array(goal)) == is_reached


def go_to(env, goal):
    """Go straight to a goal; return whether the gripper is there in the end."""
    observation, _ = env.reset(seed=0, options={'goal': goal})
    for _ in range(env.interface.episode_steps):
        action = np.zeros(4)
        action[:3] = 10.0 * (goal - observation['achieved_goal'])
        observation, *_, info = env.step(action)
    return info['is_success']
