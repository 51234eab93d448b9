"""The arm behind topics as an env, with a real sim_node at the other end."""

import time

from geometry_msgs.msg import TwistStamped
from mher_ros.errors import ArmError, EpisodeLostError, StopAsked, TRIES
from mher_ros.learning.run import start_training
from mher_ros.ros import arm_link
from mher_ros.ros.arm_env import ArmEvaluator
from mher_ros.ros.arm_link import ArmSilentError
from mher_ros.ros.lockstep_link import LockstepLink
from mher_ros.ros.paced_link import PacedLink
from mher_ros.tasks import make, TASKS
from mher_ros.tasks.point2d import Point2DLargeOptions
from mher_ros.tasks.rollouts import Evaluator, GOALS_AT_ONCE
from mher_ros.tasks.task import TaskOptions
import numpy as np
import pytest
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros


PERIOD = 100_000_000
"""Of point2d_large [ns]."""


def actions_for(task, count, seed=0):
    size = (count, len(task.interface.action))
    return np.random.default_rng(seed).uniform(-1.2, 1.2, size)


def assert_same(one, two):
    assert one.keys() == two.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], two[key])


# In lockstep


@pytest.mark.parametrize('name', TASKS)
def test_an_episode_is_the_tasks_own_to_the_bit(world, name):
    world.sim_node(name)
    task = make(name)
    env = world.arm(LockstepLink, make(name))
    assert env.observation_space == task.observation_space
    assert env.action_space == task.action_space
    for seed in (1, 2):
        assert_same(env.reset(seed=seed)[0], task.reset(seed=seed)[0])
        for action in actions_for(task, task.interface.episode_steps, seed):
            (observation, *rest), (expected, *others) = env.step(action), task.step(action)
            assert_same(observation, expected)
            assert rest == others
        assert rest[2] is True  # truncated
    env.close()


def test_an_evaluation_is_that_of_one_process_to_the_bit(world):
    world.sim_node('reacher')
    options = TaskOptions(episode_steps=10, threshold=0.02)
    env = world.arm(LockstepLink, make('reacher', options))
    weights = np.random.default_rng(0).normal(size=(2, 11))
    offsets = 0.1 * np.arange(GOALS_AT_ONCE)[:, None]

    def policy(observations, goals):
        # It matters in which row a goal is shown: a matrix product may round each row its own way.
        return np.tanh(observations @ weights.T + offsets).astype(np.float32)

    told = []
    seeds = range(27)  # more than share a policy call
    seen = ArmEvaluator(env, lambda *goals: told.append(goals)).run(policy, seeds)
    expected = Evaluator('reacher', options).run(policy, seeds)
    assert seen.summary() == expected.summary()
    np.testing.assert_array_equal(seen.final_errors, expected.final_errors)
    assert told == [(index, 27) for index in range(27)]


REACHER = {'schedule.evaluation_goals': '3'}
SLOW = {'schedule.steps': '100', 'schedule.evaluation_goals': '2'}


@pytest.mark.parametrize(
    ('name', 'changes'),
    [
        ('reacher', REACHER),
        pytest.param('fetch_reach', SLOW, marks=pytest.mark.slow),
        pytest.param('sawyer_reach', SLOW, marks=pytest.mark.slow),
    ],
)
def test_a_run_is_that_of_one_process(world, tmp_path, tiny, in_process, run_in, name, changes):
    world.sim_node(name)
    config = tiny(name, **changes)
    env = world.arm(LockstepLink, make(name, config.task))
    start_training(tmp_path / 'run', config, arm=(env, ArmEvaluator(env).run), export=False)
    run, expected = run_in(tmp_path / 'run'), in_process(name, export=False, **changes)
    assert run.rows() == expected.rows()
    assert run.networks() == expected.networks()


def test_an_arm_restarted_in_the_middle_of_a_reset_starts_where_it_should(world, monkeypatch):
    sim = world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    call, called = env.link._call, []

    def call_and_restart(client, request):
        answer = call(client, request)
        called.append(client.srv_name)
        if len(called) == 1:  # the seed has been told, the reset not been asked for
            sim.kill()
            world.sim_node()
        return answer

    monkeypatch.setattr(env.link, '_call', call_and_restart)
    assert_same(env.reset(seed=2)[0], make('point2d_large').reset(seed=2)[0])
    assert len(called) == 4


def test_an_episode_that_somebody_else_disturbs_is_lost(world):
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    other = world.arm(LockstepLink, make('point2d_large'))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    other.reset(seed=2)
    other.step((0.5, 0.5))
    with pytest.raises(EpisodeLostError, match='somebody else resets or commands it'):
        env.step((0.5, 0.5))


def test_an_arm_that_was_never_there_is_told_by_its_service(world, monkeypatch):
    monkeypatch.setattr(arm_link, 'FIRST_CONTACT', 0.0)
    env = world.arm(LockstepLink, make('point2d_large'), timeout=0.5)
    began = time.monotonic()
    with pytest.raises(ArmSilentError) as caught:
        env.reset(seed=1)
    assert time.monotonic() - began < 3.0
    assert str(caught.value) == (
        'nothing on sim_node/reset for 0.5 s (nobody offers it): is the arm, or sim_node, '
        'running in this ROS domain?'
    )


def test_an_arm_that_is_another_is_told_by_what_it_is(world, monkeypatch):
    world.sim_node('sawyer_reach')
    peer = world.peer()
    env = world.arm(LockstepLink, make('fetch_reach'), peer=peer)
    sentence = 'task fetch_reach is expected behind sim_node/reset, got one with sawyer_reach'
    with pytest.raises(ArmError, match=sentence):
        env.reset(seed=1)
    env = world.arm(PacedLink, make('sawyer_reach'), peer=peer)
    sentence = 'stepping realtime is expected behind sim_node/reset, got one with lockstep'
    with pytest.raises(ArmError, match=sentence):
        env.reset(seed=1)
    # One that nobody can reset says nothing of itself but its joints.
    monkeypatch.setattr(arm_link, 'FIRST_CONTACT', 0.0)
    env = world.arm(PacedLink, make('fetch_reach'), peer=peer, arm='', timeout=2.0)
    with pytest.raises(ArmSilentError) as caught:
        env.reset(seed=1)
    said = str(caught.value)
    assert said.startswith('nothing on /joint_states that can be used for 2 s (1 node publishes')
    assert 'the joint state lacks slide0_joint, ' in said
    assert 'it tells of right_j0, ' in said


def test_of_two_arms_in_a_domain_the_newcomer_is_refused(world):
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    second, peer = world.sim_node(), world.peer()
    newcomer = world.arm(LockstepLink, make('point2d_large'), peer=peer)
    peer.wait_until(lambda: peer.node.count_publishers('/joint_states') == 2, 'both are seen')
    with pytest.raises(ArmError, match='/joint_states tells of two arms at once'):
        newcomer.reset(seed=2)
    with pytest.raises(EpisodeLostError):
        while True:
            env.step((0.5, 0.5))
    assert second.stop() == 0
    assert_same(env.reset(seed=3)[0], make('point2d_large').reset(seed=3)[0])
    env.step((0.5, 0.5))


def test_a_wish_to_stop_is_seen_in_the_middle_of_an_episode(world):
    world.sim_node()
    wish = []
    env = world.arm(LockstepLink, make('point2d_large'), asked_to_stop=lambda: bool(wish))
    env.reset(seed=1)
    env.step((0.5, 0.5))
    wish.append('stop')
    with pytest.raises(StopAsked):
        env.step((0.5, 0.5))


def test_an_arm_that_takes_no_seed_is_an_error(world):
    # It has the parameter, but not for numbers of that kind.
    world.sim_node()
    env = world.arm(LockstepLink, make('point2d_large'))
    with pytest.raises(ArmError, match='the arm takes no seed for its start'):
        env.link.reset(-5)


# Paced by the arm's own clock


def episode(env, seed, actions):
    """Return the observations and stamps [ns] of the first try that is not lost to a stall."""
    for _ in range(TRIES):
        try:
            seen, stamps = [env.reset(seed=seed)[0]], [env.link._stamp]
            for action in actions:
                seen.append(env.step(action)[0])
                stamps.append(env.link._stamp)
            return seen, np.array(stamps)
        except EpisodeLostError:
            pass
    pytest.fail('the machine is too busy')


@pytest.fixture(scope='module')
def paced(shared_world):
    """Return an arm that does not wait, as an env, and a listener to its states."""
    shared_world.sim_node(stepping='realtime', command_timeout=5.0)
    env = shared_world.arm(PacedLink, make('point2d_large'))
    return env, shared_world.peer().listen(JointState, 'joint_states')


def test_an_arm_that_cannot_wait_does_a_step_a_period(paced):
    env, _ = paced
    task, actions = make('point2d_large'), actions_for(env.task, 20)
    seen, stamps = episode(env, 3, actions)
    assert set(np.diff(stamps)) == {PERIOD}
    # Each command is in force for one period, and no period passes without one.
    assert_same(seen[0], task.reset(seed=3)[0])
    for observation, action in zip(seen[1:], actions, strict=True):
        assert_same(observation, task.step(action)[0])


def test_a_command_that_comes_too_late_loses_the_episode(paced):
    env, states = paced
    episode(env, 4, [(0.1, 0.1)])
    for _ in range(2):
        states.wait_for()
    lost = env.episodes_lost
    with pytest.raises(EpisodeLostError, match='a command came too late'):
        env.step((0.1, 0.1))
    assert env.episodes_lost == lost + 1
    episode(env, 4, [(0.1, 0.1)])


def test_an_arm_that_cannot_wait_and_is_restarted_loses_the_episode(world):
    sim = world.sim_node(stepping='realtime')
    env = world.arm(PacedLink, make('point2d_large'))
    episode(env, 5, [(0.1, 0.1)])
    sim.kill()
    world.sim_node(stepping='realtime')
    with pytest.raises(EpisodeLostError):
        env.step((0.1, 0.1))
    start = env.reset(seed=6)[0]
    assert_same(start, make('point2d_large').reset(seed=6)[0])


class LikeReal:
    """The point as a real arm would be: a clock that jitters, states as often as it likes."""

    period = 0.02

    def __init__(self, peer):
        self._place, self._velocity = np.zeros(2), np.zeros(2)
        self._node, self._rng = peer.node, np.random.default_rng(0)
        self._states = peer.node.create_publisher(JointState, 'joint_states', 10)
        peer.node.create_subscription(TwistStamped, 'twist_command', self._obey, 1)
        peer.node.create_service(Trigger, 'home/reset', self._go_home)
        peer.node.create_timer(self.period, self._advance)

    def _obey(self, message):
        self._velocity = np.array((message.twist.linear.x, message.twist.linear.y))

    def _go_home(self, _, response):
        self._place[:], response.success, response.message = 0.0, True, 'at home'
        return response

    def _advance(self):
        self._place += self.period * self._velocity
        message = JointState(name=['x', 'y'], position=self._place.tolist(), velocity=[0.0, 0.0])
        jitter = Duration(nanoseconds=int(self._rng.uniform(0.0, 1e6)))
        message.header.stamp = (self._node.get_clock().now() - jitter).to_msg()
        self._states.publish(message)


def test_an_arm_with_a_clock_and_a_rate_of_its_own_does_steps_of_a_period(world):
    LikeReal(world.peer())
    task = make('point2d_large', Point2DLargeOptions(episode_steps=10))
    task.random_start = False  # it starts at home
    env = world.arm(PacedLink, task, arm='home')
    seen, stamps = episode(env, 1, [(0.1, 0.0)] * 10)
    np.testing.assert_array_equal(seen[0]['observation'], (0.0, 0.0))
    assert seen[-1]['observation'] == pytest.approx((1.0, 0.0), abs=0.15)
    assert (stamps[-1] - stamps[0]) / (10 * PERIOD) == pytest.approx(1.0, abs=0.07)


@pytest.mark.parametrize('leave', [lambda env: env.close(), lambda env: None], ids=['', 'stalled'])
def test_an_arm_that_is_left_stands_still(paced, leave):
    env, states = paced
    episode(env, 7, [(0.05, 0.05)] * 3)
    leave(env)
    moved = []

    def stands(state):
        moved.append(tuple(state.position))
        return len(moved) > 1 and moved[-1] == moved[-2]

    states.wait_for(stands)
    # It was told to: the command itself would have been in force for five seconds.
    assert len(moved) <= 8
