"""The point that an arm is led along starts where the arm is and moves as it is told."""

from arm_models import load_arm
from mher_ros.control.references import JointReference, LEAD, ToolReference
import numpy as np
import pytest

TICK = 0.01
UP = np.array((0.0, 0.0, 0.1))


@pytest.fixture(params=['fetch', 'panda'])
def arm(request):
    return load_arm(request.param)


@pytest.fixture
def model(arm):
    return arm[1]


@pytest.fixture
def home(arm):
    robot, model = arm
    return np.array([robot.home.get(name, 0.0) for name in model.state_names])


@pytest.fixture(params=[ToolReference, JointReference])
def kind(request):
    return request.param


def still(positions):
    return np.zeros(len(positions))


@pytest.mark.parametrize('tied', [False, True])
def test_it_begins_where_an_arm_at_rest_is(kind, tied, model, home):
    reference = kind(model, tied)
    reference.begin(home, still(home))
    position, orientation = model.tool_pose(home)
    np.testing.assert_allclose(reference.tool_position, position, atol=1e-12)
    np.testing.assert_allclose(reference.orientation, orientation, atol=1e-12)


def test_it_begins_ahead_of_an_arm_that_moves(kind, model, home):
    velocities = np.full(len(home), 0.1)
    reference = kind(model, tied=False)
    reference.begin(home, velocities)
    position, velocity = model.tool(home, velocities)
    np.testing.assert_allclose(reference.tool_position, position + LEAD * velocity, atol=1e-3)


@pytest.mark.parametrize('told', [-9.0, 9.0])
def test_no_joint_begins_farther_ahead_than_it_can_go(told, model, home):
    reference = JointReference(model, tied=False)
    reference.begin(home, np.full(len(home), told))
    ahead = np.abs(reference.joint_positions - home[: len(model.joint_names)])
    assert (ahead <= LEAD * model.velocity_limits + 1e-12).all()


def test_joints_found_beyond_their_range_begin_at_its_end(model, home):
    positions = home.copy()
    positions[1] = model.upper[1] + 0.04
    reference = JointReference(model, tied=False)
    reference.begin(positions, still(home))
    assert reference.joint_positions[1] == model.upper[1]
    np.testing.assert_array_equal(reference.joint_velocities, 0.0)


def test_a_free_point_goes_as_told_whatever_the_arm_does(kind, model, home):
    reference = kind(model, tied=False)
    reference.begin(home, still(home))
    start = reference.tool_position
    tool, _ = model.tool(home, still(home))
    for _ in range(50):
        reference.advance(UP, TICK, tool, home)
    np.testing.assert_allclose(reference.tool_position - start, 50 * TICK * UP, atol=2e-3)


@pytest.mark.parametrize('kind', [ToolReference, JointReference])
def test_a_tied_point_comes_to_the_arm_in_time(kind, model, home):
    reference = kind(model, tied=True)
    reference.begin(home, still(home))
    away = model.tool(home, still(home))[0] + (0.0, 0.0, 0.03)
    for _ in range(150):
        reference.advance(np.zeros(3), TICK, away, home)
    np.testing.assert_allclose(reference.tool_position, away, atol=2e-3)


def test_joints_are_led_to_where_the_point_is(model, home):
    reference = JointReference(model, tied=False)
    reference.begin(home, still(home))
    for _ in range(30):
        before = reference.joint_positions
        reference.advance(UP, TICK, reference.tool_position, home)
        step = reference.joint_positions - before
        np.testing.assert_allclose(step, reference.joint_velocities * TICK, atol=1e-12)
    reference.look(home)
    led = np.append(reference.joint_positions, home[len(model.joint_names) :])
    position, orientation = model.tool_pose(led)
    np.testing.assert_allclose(position, reference.tool_position, atol=1e-9)
    np.testing.assert_allclose(orientation, reference.orientation, atol=0.02)


def test_velocities_are_found_for_where_the_joints_are(model, home):
    reference = JointReference(model, tied=True)
    reference.begin(home, still(home))
    moved = home.copy()
    moved[:3] += 0.2
    tool, _ = model.tool(moved, still(home))
    reference.advance(UP, TICK, tool, moved)
    velocities = np.append(reference.joint_velocities, still(home)[len(model.joint_names) :])
    _, velocity = model.tool(moved, velocities)
    np.testing.assert_allclose(velocity, UP, atol=0.06)
    np.testing.assert_allclose(
        reference.joint_positions, moved[: len(model.joint_names)], atol=0.03
    )


@pytest.mark.parametrize('tied', [False, True])
def test_joints_stay_near_where_they_were_when_the_motion_began(tied, model, home):
    start = home.copy()
    start[[0, 2]] += (0.3, -0.3)  # not where a simulation starts: nothing draws them there
    reference = JointReference(model, tied)
    reference.begin(start, still(home))
    here, count = start.copy(), len(model.joint_names)
    first, _ = model.tool(start, still(home))
    # Round and round: without a pull the elbow would have wandered off.
    for way in 5 * ((0.1, 0.0, 0.0), (0.1, 0.1, 0.0), (0.0, 0.1, -0.1), (0.0, 0.0, 0.0)):
        for _ in range(150):
            tool, _ = model.tool(here, still(home))
            reference.advance(4.0 * (first + way - tool), TICK, tool, here)
            here[:count] = reference.joint_positions
    np.testing.assert_allclose(here, start, atol=0.02)


@pytest.mark.parametrize('tied', [False, True])
def test_joints_far_from_home_do_not_set_out_for_it(tied, model, home):
    start = home.copy()
    start[[0, 2, 4]] += (0.5, -0.5, 0.5)
    reference = JointReference(model, tied)
    reference.begin(start, still(home))
    for _ in range(50):
        reference.advance(np.zeros(3), TICK, reference.tool_position, start)
        assert np.abs(reference.joint_velocities).max() < 1e-6


@pytest.mark.parametrize('tied', [False, True])
def test_joints_stand_still_when_their_limits_leave_no_way(tied, model, home):
    # Stretched out upwards as far as it goes, and told to go on.
    reference = JointReference(model, tied)
    reference.begin(home, still(home))
    here, count = home.copy(), len(model.joint_names)
    for _ in range(3000):
        tool, _ = model.tool(here, still(home))
        reference.advance(2.5 * UP, TICK, tool, here)
        here[:count] = reference.joint_positions
    np.testing.assert_array_equal(reference.joint_velocities, 0.0)
    np.testing.assert_array_equal(reference.led, 0.0)


@pytest.mark.parametrize('follows', [True, False])
def test_the_farther_a_stuck_arm_is_left_behind_the_farther_ahead_may_the_point_be(
    follows, kind, model, home
):
    reference = kind(model, tied=True)
    reference.begin(home, still(home))
    here, _ = model.tool(home, still(home))
    for _ in range(200):
        reference.advance(0.5 * UP, TICK, here, home)
        if follows:
            here = here + 0.5 * UP * TICK
    ahead = np.linalg.norm(reference.tool_position - here)
    assert (ahead <= reference.most_ahead) == follows
    assert reference.most_ahead < 0.02  # at 0.05 m/s; the leash is 0.08 m


def test_a_free_point_may_be_as_far_ahead_as_the_leash_is_long(kind, model, home):
    reference = kind(model, tied=False)
    reference.begin(home, still(home))
    reference.advance(UP, TICK, model.tool(home, still(home))[0], home)
    assert reference.most_ahead == np.inf
