"""The simulated arm in real time, seen from outside."""

from mher_ros.ros.common.raw_messages import SECOND
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from sim_node_arm import PERIOD, SimNodeArm, stamp_of
from std_srvs.srv import SetBool

pytestmark = pytest.mark.ros


@pytest.fixture(scope='module')
def free(shared_worlds):
    """Return a point whose time passes by itself."""
    return SimNodeArm(shared_worlds(), stepping='realtime')


def test_time_passes_without_commands(free):
    free.states.wait_for(lambda _: len(free.states.messages) >= 4, after=0)
    stamps = [stamp_of(message) for message in free.states.messages]
    assert set(np.diff(stamps)) == {PERIOD}


def test_an_arm_holds_still_when_commands_stay_away(free):
    count, (_, start) = len(free.states.messages), free.latest()
    free.send((-0.01 * np.sign(start[0]), 0.0), 0)
    way = [start[0]]

    def stands_again(state):
        way.append(state.position[0])
        return way[-2] == way[-1] != start[0]

    free.states.wait_for(stands_again, after=count)
    moves = len(set(way)) - 1
    assert 2 <= moves <= 4  # command_timeout is two periods
    assert abs(way[-1] - start[0]) == pytest.approx(0.01 * moves)


def test_time_stands_still_while_paused(free):
    free.peer.ask(SetBool, 'sim_node/pause', data=True)
    stamp = stamp_of(free.states.wait_for())
    assert [stamp_of(free.states.wait_for()) for _ in range(3)] == [stamp] * 3
    free.peer.ask(SetBool, 'sim_node/pause', data=False)
    free.states.wait_for(lambda state: stamp_of(state) == stamp + PERIOD, after=0)


def test_lateness_is_told(free):
    figures = free.figures()
    # Beside other work it may be late, and give up time; more than a minute it did not have.
    assert 0.0 <= float(figures['worst lateness [s]']) < 60.0
    assert 0.0 <= float(figures['time given up [s]']) < 60.0


def rate_of(states, seconds):
    """Return the simulated seconds in a second of this process, over so many of the former."""
    begin = stamp_of(states.wait_for(lambda _: len(states.messages) > 20, after=0))
    states.wait_for(lambda state: stamp_of(state) - begin >= seconds * SECOND)
    stamps = np.array([stamp_of(message) for message in states.messages[20:]]) - begin
    times = np.array(states.times[20 : 20 + len(stamps)])
    return np.polyfit(times - times[0], stamps / SECOND, 1)[0]


@pytest.mark.slow
def test_the_rate_is_held_to_one_per_cent(world):
    world.sim_node('fetch_reach', 'realtime')
    states = world.peer().listen(JointState, 'joint_states')
    assert rate_of(states, 10.0) == pytest.approx(1.0, rel=0.01)


def test_time_passes_faster_by_the_factor(world):
    world.sim_node(stepping='realtime', rate_factor=20.0)
    states = world.peer().listen(JointState, 'joint_states')
    # A busy machine cannot keep up, and gives up time.
    assert 4.0 < rate_of(states, 20.0) < 24.0
