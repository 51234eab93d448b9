"""What holds for every task."""

import dataclasses

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from mher_ros.options import OptionError
from mher_ros.tasks import make, task_class, TASKS
import numpy as np
import pytest
import torch


@pytest.fixture(params=TASKS)
def name(request):
    return request.param


@pytest.fixture
def task(name):
    return make(name)


@pytest.fixture
def env_id(name):
    class_name = task_class(name).__name__
    return f'mher_ros/{class_name}-v1'


def random_actions(task, steps, seed=0, reach=1.0):
    shape = steps, *task.action_space.shape
    return np.random.default_rng(seed).uniform(-reach, reach, shape).astype(np.float32)


def play(task, seed, actions):
    """Return all that an episode shows: observations, goal and rewards."""
    start, _ = task.reset(seed=seed)
    steps = [task.step(action) for action in actions]
    observations = [start['observation'], *(step[0]['observation'] for step in steps)]
    return np.array(observations), start['desired_goal'], np.array([step[1] for step in steps])


@pytest.mark.filterwarnings('error', 'ignore:.*Box observation space m')
def test_registered_id_passes_the_checks_of_gymnasium(env_id):
    check_env(gymnasium.make(env_id).unwrapped, skip_render_check=True)


def test_registered_id_builds_the_task_it_names(name, env_id):
    assert gymnasium.make(env_id).unwrapped.interface == make(name).interface


def test_specification_of_a_registered_task_survives_json(env_id):
    env = gymnasium.make(env_id, threshold=0.5)
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.unwrapped.interface == env.unwrapped.interface


def test_options_are_arguments_of_gymnasium_make(env_id):
    interface = gymnasium.make(env_id, threshold=0.5, episode_steps=7).unwrapped.interface
    assert (interface.success_threshold, interface.episode_steps) == (0.5, 7)


def test_unknown_option_is_refused_with_those_there_are(env_id):
    with pytest.raises(TypeError, match=r"no options \['treshold'\]; it has \[.*'threshold'"):
        gymnasium.make(env_id, treshold=0.5)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'threshold': 0.0}, 'threshold must be at least 1e-09, got 0.0'),
        ({'threshold': float('nan')}, 'threshold takes a finite number'),
        ({'episode_steps': 0}, 'episode_steps must be at least 1 and at most 100000, got 0'),
        ({'episode_steps': 1.5}, 'episode_steps takes a whole number, got 1.5'),
    ],
)
def test_option_out_of_range_is_refused(env_id, options, message):
    with pytest.raises(OptionError, match=message):
        gymnasium.make(env_id, **options)


def test_options_given_directly_are_checked_too(name, task):
    options = type(task.options)(threshold=-1.0)
    with pytest.raises(OptionError, match=r'task\.threshold must be at least 1e-09, got -1\.0'):
        make(name, options)


def test_unknown_task_is_refused_with_those_there_are():
    with pytest.raises(OptionError, match=r"unknown task 'fetch'; there are .*fetch_reach"):
        make('fetch')


def test_unknown_render_mode_is_refused(name):
    with pytest.raises(ValueError, match="takes None or rgb_array, got 'human'"):
        make(name, render_mode='human')


def test_interface_names_the_task_and_its_vectors(name, task):
    interface = task.interface
    observation, _ = task.reset(seed=0)
    assert interface.task == name
    assert observation['observation'].shape == (len(interface.observation),)
    assert observation['desired_goal'].shape == (len(interface.goal),)
    assert task.action_space.shape == (len(interface.action),)
    for vector in (interface.observation, interface.goal, interface.action):
        assert len({field.name for field in vector}) == len(vector)
    assert task.options.threshold == interface.success_threshold


def test_observation_holds_the_three_vectors_of_a_goal_env(task):
    observation, _ = task.reset(seed=3)
    for action in (*random_actions(task, 3), None):
        assert list(observation) == ['observation', 'achieved_goal', 'desired_goal']
        assert task.observation_space.contains(observation)
        np.testing.assert_array_equal(
            observation['achieved_goal'], task.interface.achieved_goal(observation['observation'])
        )
        np.testing.assert_array_equal(observation['desired_goal'], task.goal)
        if action is not None:
            observation, *_ = task.step(action)


def test_reward_of_a_step_is_that_of_compute_reward(task):
    # From a goal at the start, so that steps within and outside the threshold both occur.
    start, _ = task.reset(seed=1)
    task.reset(seed=1, options={'goal': start['achieved_goal']})
    push = np.full(task.action_space.shape, 0.2, np.float32)
    seen = set()
    for _ in range(40):
        observation, reward, terminated, _, info = task.step(push)
        expected = task.compute_reward(
            observation['achieved_goal'], observation['desired_goal'], info
        )
        assert reward == expected
        assert info['is_success'] == (reward == 0.0)
        assert not terminated
        seen.add(reward)
    assert seen == {0.0, -1.0}


def test_rewards_of_a_batch_are_those_one_by_one(task):
    rng = np.random.default_rng(0)
    size, reach = len(task.interface.goal), task.interface.success_threshold
    for shape in ((40, size), (7, 6, size)):
        desired = rng.normal(size=shape)
        achieved = desired + rng.uniform(-reach, reach, shape)
        rewards = task.compute_reward(achieved, desired, {})
        one_by_one = [
            float(task.compute_reward(one, other, {}))
            for one, other in zip(
                achieved.reshape(-1, size), desired.reshape(-1, size), strict=True
            )
        ]
        assert rewards.shape == shape[:-1]
        assert set(one_by_one) == {0.0, -1.0}
        np.testing.assert_array_equal(rewards.ravel(), one_by_one)


def test_threshold_is_compared_with_the_plain_distance_and_included(task):
    threshold, size = task.interface.success_threshold, len(task.interface.goal)
    origin, away = np.zeros(size), np.zeros(size)
    for distance, reward in (
        (threshold, 0.0),
        (np.nextafter(threshold, np.inf), -1.0),
        (1.2 * threshold, -1.0),
    ):
        away[-1] = distance
        assert task.compute_reward(origin, away, {}) == reward
        assert task.compute_reward(away, origin, {}) == reward
    # Each entry is within the threshold, the distance is not.
    assert task.compute_reward(origin, np.full(size, 0.9 * threshold), {}) == -1.0


def test_episode_ends_after_its_steps_and_never_before(name, task):
    task = make(name, type(task.options)(episode_steps=5, threshold=1e9))
    for seed in (0, 1):
        task.reset(seed=seed)
        ends = [task.step(action)[2:4] for action in random_actions(task, 5)]
        assert ends == [(False, False)] * 4 + [(False, True)]
        assert task.compute_truncated(None, None, {})
        assert not task.compute_terminated(None, None, {})


def test_episode_depends_on_its_seed_and_actions_alone(name, task):
    actions = random_actions(task, 30)
    first = play(task, 5, actions)
    play(task, 6, random_actions(task, 11, seed=1))
    task.reset(seed=7)
    for others in (play(task, 5, actions), play(make(name), 5, actions)):
        for mine, other in zip(first, others, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_another_seed_is_another_episode(task):
    _, goal, _ = play(task, 5, [])
    _, other, _ = play(task, 6, [])
    assert not np.array_equal(goal, other)


def test_reset_without_a_seed_goes_on_drawing(task):
    goals = [task.reset(seed=5)[0]['desired_goal'], task.reset()[0]['desired_goal']]
    assert not np.array_equal(*goals)
    np.testing.assert_array_equal(task.reset(seed=5)[0]['desired_goal'], goals[0])
    np.testing.assert_array_equal(task.reset()[0]['desired_goal'], goals[1])


def test_actions_are_cut_to_one(task):
    actions = random_actions(task, 20, reach=3.0)
    assert np.abs(actions).max() > 1.0
    wide, _, _ = play(task, 2, actions)
    cut, _, _ = play(task, 2, np.clip(actions, -1.0, 1.0))
    np.testing.assert_array_equal(wide, cut)


def test_stepping_several_together_is_stepping_each(task):
    others = [type(task)() for _ in range(3)]
    actions = np.stack([random_actions(task, 3, seed, reach=3.0) for seed in range(30)])
    alone = np.stack([play(task, seed, actions[:, seed])[0] for seed in range(3)])
    for seed, other in enumerate(others):
        other.reset(seed=seed)
    together = [type(task).step_batch(others, step) for step in actions]
    np.testing.assert_array_equal(np.stack(together, axis=1), alone[:, -30:])
    with pytest.raises(ValueError, match='shape|argument'):
        type(task).step_batch(others, actions[0, :2])


def test_steps_together_count_towards_the_end_of_an_episode(task):
    options = dataclasses.replace(task.default_options, episode_steps=3)
    others = [type(task)(options) for _ in range(2)]
    actions = np.zeros((2, *task.action_space.shape), np.float32)
    for other in others:
        other.reset(seed=0)
    type(task).step_batch(others, actions)
    for truncated in (False, True):
        assert [other.step(actions[0])[3] for other in others] == [truncated] * 2


@pytest.mark.parametrize('shape', [(), (1,), (9,), (1, 2)])
def test_action_of_another_shape_is_refused(task, shape):
    task.reset(seed=0)
    with pytest.raises(ValueError, match=r'an action has shape \(\d,\), got'):
        task.step(np.zeros(shape))


def test_action_that_is_not_a_number_is_refused_and_changes_nothing(task):
    good = random_actions(task, 1)[0]
    task.reset(seed=0)
    expected = task.step(good)[0]['observation']
    task.reset(seed=0)
    bad = good.copy()
    bad[-1] = np.nan
    with pytest.raises(ValueError, match='NaN'):
        task.step(bad)
    np.testing.assert_array_equal(task.step(good)[0]['observation'], expected)


def test_goal_can_be_set_and_leaves_the_start_as_it_was(task):
    drawn, _ = task.reset(seed=4)
    goal = 0.5 * (np.array(task.interface.goal_low) + task.interface.goal_high)
    chosen, _ = task.reset(seed=4, options={'goal': goal.tolist()})
    np.testing.assert_array_equal(chosen['desired_goal'], goal)
    np.testing.assert_array_equal(chosen['achieved_goal'], drawn['achieved_goal'])


@pytest.mark.parametrize('goal', [[0.0], [[0.0, 0.0, 0.0]], 'nan', 'inf'])
def test_goal_that_is_none_is_refused(task, goal):
    size = len(task.interface.goal)
    goal = [float(goal)] * size if isinstance(goal, str) else goal
    with pytest.raises(ValueError, match=f'{size} finite numbers, got'):
        task.reset(seed=0, options={'goal': goal})


def test_goals_lie_in_the_declared_box_and_fill_it(task):
    goals = np.array([task.reset(seed=seed)[0]['desired_goal'] for seed in range(1000)])
    low, high = np.array(task.interface.goal_low), np.array(task.interface.goal_high)
    assert (goals >= low).all()
    assert (goals <= high).all()
    span = high - low
    assert (goals.min(axis=0) < low + 0.05 * span).all()
    assert (goals.max(axis=0) > high - 0.05 * span).all()


def test_changing_what_was_returned_changes_nothing_in_the_task(task):
    actions = random_actions(task, 10)
    untouched, _, _ = play(task, 8, actions)
    seen = []
    observation, _ = task.reset(seed=8)
    for action in (*actions, None):
        seen.append(observation['observation'].copy())
        for vector in observation.values():
            vector[:] = 99.0
        if action is not None:
            observation, *_ = task.step(action)
    np.testing.assert_array_equal(seen, untouched)


@pytest.mark.parametrize('shape', [(), (4,), (3, 4)])
def test_achieved_goal_is_read_from_arrays_and_tensors_alike(task, shape):
    interface = task.interface
    observations = np.random.default_rng(0).normal(size=(*shape, len(interface.observation)))
    expected = observations[..., list(interface.achieved_index)]
    np.testing.assert_array_equal(interface.achieved_goal(observations), expected)
    tensor = interface.achieved_goal(torch.from_numpy(observations))
    assert isinstance(tensor, torch.Tensor)
    np.testing.assert_array_equal(tensor.numpy(), expected)
