"""The simulated arm in lockstep, seen from outside."""

from mher_ros.tasks import make
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sim_node_arm import PERIOD, SimNodeArm, stamp_of
from std_srvs.srv import SetBool

pytestmark = pytest.mark.ros


@pytest.fixture(scope='module')
def point(shared_world):
    """Return the point, which waits for commands."""
    return SimNodeArm(shared_world)


@pytest.fixture(scope='module')
def quiet(shared_worlds):
    """Return a point that tells its state by itself every ten seconds only."""
    return SimNodeArm(shared_worlds(), view_rate=0.1)


def test_a_command_that_answers_the_latest_state_does_one_step(point):
    point.reset()
    before, start = point.latest()
    after, end = point.step((0.3, -0.2))
    assert after == before + PERIOD
    assert np.linalg.norm(end - start) > 0.1  # towards one wall or the other
    np.testing.assert_allclose(end, np.clip(start + (0.3, -0.2), -5.0, 5.0), atol=1e-7)


@pytest.mark.parametrize(
    'stamp_from',
    [
        lambda latest: latest - PERIOD,
        lambda latest: latest - 7 * PERIOD,
        lambda latest: latest + PERIOD,
        lambda latest: latest - 1,
        lambda latest: 0,
    ],
    ids=['repeated', 'late', 'early', 'foreign', 'none'],
)
def test_any_other_command_changes_nothing_and_is_answered_with_the_latest_state(
    quiet, stamp_from
):
    quiet.step((0.1, 0.1))
    count = len(quiet.states.messages)
    latest, place = quiet.latest()
    quiet.send((0.5, 0.5), stamp_from(latest))
    answer = quiet.states.wait_for(after=count)
    assert stamp_of(answer) == latest
    np.testing.assert_array_equal(answer.position, place)
    after, end = quiet.step((0.0, 0.0))
    assert after == latest + PERIOD
    np.testing.assert_array_equal(end, place)


def test_an_arm_that_waits_tells_its_state_again_and_again(point):
    stamp, _ = point.latest()
    for _ in range(3):
        assert stamp_of(point.states.wait_for()) == stamp


def test_every_state_has_a_stamp_of_its_own_through_resets_too(point):
    rng = np.random.default_rng(0)
    told = {}
    begin, _ = point.latest()
    for _ in range(3):
        point.reset()
        for action in rng.uniform(-1.0, 1.0, (10, 2)):
            point.step(action)
    for message in point.states.messages:
        told.setdefault(stamp_of(message), set()).add(tuple(message.position))
    assert all(len(places) == 1 for places in told.values())
    end, _ = point.latest()
    # A reset takes two periods, lest its state be taken for the answer to a command.
    assert end - begin == 3 * (2 + 10) * PERIOD
    assert set(range(begin, end + 1, PERIOD)) - told.keys() == {
        begin + (12 * episode + 1) * PERIOD for episode in range(3)
    }


def test_a_paused_arm_does_nothing_until_it_goes_on(point):
    said = point.peer.ask(SetBool, 'sim_node/pause', data=True)
    assert (said.success, said.message) == (True, 'paused')
    stamp, place = point.latest()
    point.send((0.1, 0.1), stamp)
    assert point.statuses.wait_for(after=-2).state == 'paused'
    assert point.latest()[0] == stamp
    said = point.peer.ask(SetBool, 'sim_node/pause', data=False)
    assert (said.success, said.message) == (True, 'running')
    point.statuses.wait_for(lambda status: status.state == 'running', after=-2)
    assert point.step((0.0, 0.0))[0] == stamp + PERIOD
    np.testing.assert_array_equal(point.latest()[1], place)


def test_a_reset_starts_where_the_seed_says(point):
    client = point.peer.client(SetParameters, 'sim_node/set_parameters')
    task = make('point2d_large')
    for seed in (5, 6, 5):
        seeds = [Parameter('seed', value=seed).to_parameter_msg()]
        answer, _ = point.peer.call(client, SetParameters.Request(parameters=seeds))
        assert answer.results[0].successful
        status = point.reset()
        assert (status.arm, status.stepping) == ('point2d_large', 'lockstep')
        assert (status.commands, status.seed) == ('action', seed)
        task.reset(seed=seed)
        np.testing.assert_array_equal(point.latest()[1], task.joint_state()[0])


def test_a_reset_without_a_seed_starts_anywhere(quiet):
    starts = set()
    for _ in range(3):
        assert quiet.reset().seed == -1
        starts.add(tuple(quiet.latest()[1]))
    assert len(starts) == 3


def test_commands_that_make_no_sense_are_refused_and_counted(quiet):
    latest, place = quiet.latest()
    refused = int(quiet.figures()['messages refused'])
    for bad in (
        (np.nan, 0.0),
        (0.0, -np.inf),
        (0.0, 1.01),
        (0.1,),
        (0.1, 0.0, 0.1),
        (),
    ):
        quiet.send(bad, latest)
        refused += 1
        quiet.figures(messages_refused=refused)
    assert quiet.latest()[0] == latest
    quiet.process.wait_for(
        r'refused a message on /action: an action within \[-1, 1\] is expected, got \[nan'
    )
    quiet.step((0.0, 0.0))
    np.testing.assert_array_equal(quiet.latest()[1], place)


def test_the_clock_is_that_of_the_states(point):
    clock = point.peer.listen(Clock, '/clock')
    point.step((0.0, 0.0))
    stamp, _ = point.latest()
    clock.wait_for(lambda message: Time.from_msg(message.clock).nanoseconds == stamp, after=0)


def test_a_step_is_counted(quiet):
    steps = int(quiet.figures()['steps'])
    for _ in range(3):
        quiet.step((0.0, 0.0))
    quiet.figures(steps=steps + 3)
