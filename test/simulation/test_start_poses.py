"""Where episodes of the task `reach` begin: at home, at random, or where the last one ended."""

from mher_ros.learning.run.episodes import read_episodes
from mher_ros.options import OptionError
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.simulated_robot import simulated_robot
import numpy as np
import pytest
from tiny_runs import tiny_config
from training_runs import rows, run, same_episodes, same_policy, stop_after

TINY_REACH = {
    'task.robot': 'ur5e',
    'task.start': 'last',
    'task.randomise': '1.0',
    'schedule.evaluation_goals': '2',
    'schedule.steps': '80',
}


def options(**changes):
    return ReachOptions(20, 0.05, **changes)


@pytest.mark.parametrize('robot', arm_names())
def test_a_random_start_is_free_with_the_tool_in_the_box_of_goals(robot):
    task = Reach(options(robot=robot, start='random'))
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    starts = []
    for seed in range(6):
        seen, _ = task.reset(seed=seed)
        positions, velocities = task.joint_state()
        starts.append(positions)
        assert not velocities.any()
        tool = seen['achieved_goal']
        assert ((low - 1e-9 <= tool) & (tool <= high + 1e-9)).all()
        for _ in range(5):
            task.step(np.zeros(task.action_space.shape, np.float32))
        # The drives hold it there, and it touches nothing.
        np.testing.assert_allclose(task.joint_state()[0], positions, atol=1e-3)
        assert task._plant.contacts().number == 0
    assert np.ptp(starts, axis=0).max() > 0.2


def test_a_random_start_depends_on_the_seed_only():
    one, other = (Reach(options(robot='ur5e', start='random')) for _ in range(2))
    one.reset(seed=5)
    for seed in (1, 2):
        first, again = (task.reset(seed=seed)[0]['observation'] for task in (one, other))
        np.testing.assert_array_equal(first, again)
    first, second = (one.reset()[0]['observation'] for _ in range(2))
    assert not np.array_equal(first, second)


def test_a_random_start_keeps_the_orientation_of_the_tool_if_motions_keep_it():
    task = Reach(options(robot='ur5e', start='random', action='tool'))
    task.reset(seed=1)
    home = np.array([task.robot.home[name] for name in task.joint_names])
    orientation = task.arm.tool_pose(task.joint_state()[0])[1]
    assert abs(orientation @ task.arm.tool_pose(home)[1]) == pytest.approx(1.0, abs=1e-3)


def test_an_episode_begins_where_it_is_told_to():
    task = Reach(options(robot='fetch'))
    home = task.reset(seed=1)[0]['observation'][:7]
    start = home + 0.1
    seen, _ = task.reset(seed=1, options={'start': start})
    np.testing.assert_array_equal(seen['observation'][:7], start)
    np.testing.assert_array_equal(task.reset(seed=1)[0]['observation'][:7], home)
    for wrong in (start[:6], np.full(7, np.nan), [[0.0]]):
        with pytest.raises(ValueError, match='7 finite joint positions'):
            task.reset(seed=1, options={'start': wrong})
    # Beyond their limits joints start at them.
    arm = simulated_robot(load_robot('fetch'))
    arm.reset(start=np.full(7, 100.0))
    assert arm._plant._upper[1] == arm._plant.data.qpos[1]


def test_a_start_where_the_last_episode_ended_needs_observed_joints():
    with pytest.raises(OptionError, match='task.start takes home or random'):
        Reach(options(robot='ur5e', start='last', action='tool'))


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """Return folder and configuration of an uninterrupted run."""
    folder = tmp_path_factory.mktemp('whole') / 'run'
    config = tiny_config('reach', **TINY_REACH)
    run(folder, config)
    return folder, config


def test_training_episodes_begin_at_rest_where_the_one_before_ended(whole):
    episodes = read_episodes(whole[0] / 'episodes.npz')
    assert len(episodes) == 4
    home = load_robot('ur5e').home
    places = [home[name] for name in load_robot('ur5e').joints]
    noise = 2e-3  # of the encoders, at the end and at the start
    for episode in episodes:
        np.testing.assert_allclose(episode.joints[0], places, atol=noise)
        places = episode.joints[-1]
    assert np.abs(np.array(places) - list(home.values())).max() > 0.02


@pytest.mark.parametrize('cycles', [1, 3])
def test_a_run_that_goes_on_from_there_is_the_same_run(whole, tmp_path, cycles):
    folder = tmp_path / 'run'
    run(folder, whole[1], asked_to_stop=stop_after(cycles))
    run(folder, whole[1], resume=True)
    assert rows(folder) == rows(whole[0])
    assert same_policy(folder, whole[0])
    assert same_episodes(folder, whole[0])
