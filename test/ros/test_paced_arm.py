"""The arm behind topics as an env that is paced by the arm's own clock."""

from arm_episodes import actions_for, assert_same
from geometry_msgs.msg import TwistStamped
from mher_ros.errors import EpisodeLostError, TRIES
from mher_ros.ros.paced_link import PacedLink
from mher_ros.tasks import make
from mher_ros.tasks.point2d import Point2DLargeOptions
import numpy as np
import pytest
from rclpy.duration import Duration
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = pytest.mark.ros

PERIOD = 100_000_000
"""Of point2d_large [ns]."""


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
