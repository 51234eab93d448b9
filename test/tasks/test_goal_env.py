"""GoalEnvs of other people as tasks: what is found about them, and what is refused."""

import gymnasium
from gymnasium import spaces
from mher_ros.options import OptionError, override
from mher_ros.tasks import make, TASKS
from mher_ros.tasks.goal_env import goal_env_class
import numpy as np
import pytest


def box(size, low=-np.inf, high=np.inf):
    return spaces.Box(low, high, (size,), np.float64)


class Slider(gymnasium.Env):
    """A point in the plane whose speed is commanded, up to 2."""

    hides_goal = False
    limit = np.inf

    def __init__(self):
        self.observation_space = spaces.Dict(
            observation=box(3 if self.hides_goal else 4), achieved_goal=box(2), desired_goal=box(2)
        )
        self.action_space = spaces.Box(-2.0, 2.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.goal = self.np_random.uniform(-1.0, 1.0, (2, 2))
        self.count = 0
        return self.look(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.place = self.place + 0.1 * action
        self.count += 1
        ended = self.count >= self.limit
        return self.look(), 0.0, ended and self.terminates, ended and not self.terminates, {}

    terminates = False

    def look(self):
        turned = np.array((self.place.sum(), self.place[0] - self.place[1], 1.0))
        seen = turned if self.hides_goal else np.array((7.0, *self.place, 8.0))
        return {
            'observation': seen,
            'achieved_goal': self.place.copy(),
            'desired_goal': self.goal.copy(),
        }

    def compute_reward(self, achieved, desired, info):
        return (np.linalg.norm(achieved - desired, axis=-1) < 0.25).astype(float)


def made(kind, goal_map=None, **options):
    task = goal_env_class('slider', kind, goal_map)
    return task(override(task.default_options, options))


def variant(**attributes):
    return type('Variant', (Slider,), attributes)


def turn_back(observation):
    total, difference = observation[..., 0], observation[..., 1]
    return np.stack((total + difference, total - difference), -1) / 2.0


def test_the_achieved_goal_is_found_in_the_observation():
    task = made(Slider)
    assert task.interface.achieved_index == (1, 2)
    assert task.interface.has_goal_map
    seen, _ = task.reset(seed=3)
    np.testing.assert_array_equal(
        task.interface.achieved_goal(seen['observation']), task._env.place
    )


def test_success_is_what_the_env_rewards_most():
    task = made(Slider)
    assert task.interface.success_threshold == pytest.approx(0.25)
    goals = np.zeros((3, 2))
    achieved = np.array(((0.0, 0.2), (0.2, 0.2), (-0.3, 0.0)))
    np.testing.assert_array_equal(task.interface.reward(achieved, goals), (0.0, -1.0, -1.0))


def test_actions_are_scaled_to_the_envs_range():
    task = made(Slider)
    seen, _ = task.reset(seed=0)
    start = task._env.place
    task.step(np.array((1.0, -0.5), np.float32))
    np.testing.assert_allclose(task._env.place - start, (0.2, -0.1), atol=1e-7)


def test_a_goal_that_is_not_in_the_observation_is_appended():
    task = made(variant(hides_goal=True))
    assert task.interface.achieved_index == (3, 4)
    assert not task.interface.has_goal_map
    seen, _ = task.reset(seed=0)
    np.testing.assert_array_equal(seen['observation'][3:], task._env.place)


def test_a_declared_map_is_used_on_predicted_observations():
    task = made(variant(hides_goal=True), turn_back)
    assert task.interface.has_goal_map
    predicted = np.array((0.5, 0.1, 1.0, 9.0, 9.0))  # the last two are a wrong prediction
    np.testing.assert_allclose(task.interface.achieved_goal(predicted), (0.3, 0.2))


def test_a_declared_map_that_is_wrong_is_refused():
    with pytest.raises(OptionError, match='goal_map'):
        made(variant(hides_goal=True), lambda observation: observation[..., :2])


def test_the_state_after_termination_does_not_change():
    task = made(variant(limit=12, terminates=True))
    task.reset(seed=0)
    action = np.ones(2, np.float32)
    seen = [task.step(action)[0]['observation'] for _ in range(14)]
    np.testing.assert_array_equal(seen[11], seen[13])
    assert not np.array_equal(seen[10], seen[11])


def test_a_time_limit_that_is_shorter_than_an_episode_is_an_error():
    task = made(variant(limit=12))
    task.reset(seed=0)
    with pytest.raises(OptionError, match='truncated'):
        for _ in range(14):
            task.step(np.ones(2, np.float32))


def dense(self, achieved, desired, info):
    return -np.linalg.norm(achieved - desired, axis=-1)


def test_a_dense_reward_needs_a_threshold():
    kind = variant(compute_reward=dense)
    with pytest.raises(OptionError, match=r'task\.threshold'):
        made(kind)
    task = made(kind, threshold=0.5)
    np.testing.assert_array_equal(
        task.interface.reward([[0.4, 0.0], [0.6, 0.0]], [0.0, 0.0]), (0, -1)
    )


@pytest.mark.parametrize(
    ('change', 'named'),
    [
        ({'observation_space': box(3)}, 'desired_goal'),
        ({'action_space': spaces.Discrete(3)}, 'Discrete'),
        ({'action_space': spaces.Box(-np.inf, np.inf, (2,))}, 'bounded'),
        ({'compute_reward': None}, 'compute_reward'),
        ({'compute_reward': lambda *_: 0.0}, 'two values'),
    ],
)
def test_what_is_no_goal_env_is_refused(change, named):
    def make_env():
        env = Slider()
        for name, value in change.items():
            setattr(env, name, value)
        return env

    with pytest.raises(OptionError, match=named):
        made(make_env)


def test_gymnasiums_ids_are_tasks():
    task = make('FetchReach-v4')
    assert task.interface.achieved_index == (0, 1, 2)
    assert task.interface.success_threshold == pytest.approx(0.05)
    assert task.interface.episode_steps == 50


@pytest.mark.parametrize('name', ['fetch', 'no_module:Env', 'math:Env', 'math:pi', 'CartPole-v1'])
def test_names_of_nothing_are_refused(name):
    with pytest.raises(OptionError):
        make(name)
    assert name not in TASKS
