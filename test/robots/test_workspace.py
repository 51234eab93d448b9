"""The trained workspace on an arm, and the goals it takes."""

from hypothesis import given
from hypothesis import strategies as st
from mher_ros.options import OptionError
from mher_ros.robots.workspace import GoalError, MARGIN, Workspace
import numpy as np
import pytest

LOW, HIGH = np.array((1.1, 0.6, 0.4)), np.array((1.5, 0.8, 0.7))
CENTRE = (LOW + HIGH) / 2
NAN = float('nan')


def test_by_default_it_lies_where_it_was_trained():
    workspace = Workspace(LOW, HIGH)
    np.testing.assert_allclose((workspace.low, workspace.high), (LOW, HIGH), rtol=1e-15)
    point = np.array((1.2, 0.7, 0.5))
    np.testing.assert_allclose(workspace.to_policy(point), point, rtol=1e-15)


def test_its_middle_lies_at_the_origin():
    workspace = Workspace(LOW, HIGH, origin=(0.5, 0.0, 0.3))
    np.testing.assert_allclose(workspace.low, (0.3, -0.1, 0.15))
    np.testing.assert_allclose(workspace.high, (0.7, 0.1, 0.45))
    np.testing.assert_allclose(workspace.to_arm(CENTRE), (0.5, 0.0, 0.3))
    np.testing.assert_allclose(workspace.to_policy(np.array((0.7, 0.1, 0.45))), HIGH)


def test_it_grows_around_its_middle_by_the_scale():
    workspace = Workspace(LOW, HIGH, origin=(0.5, 0.0, 0.3), scale=2.0)
    np.testing.assert_allclose(workspace.low, (0.1, -0.2, 0.0), atol=1e-15)
    np.testing.assert_allclose(workspace.high, (0.9, 0.2, 0.6))
    np.testing.assert_allclose(workspace.to_policy(np.array((0.9, 0.2, 0.6))), HIGH)


def test_velocities_are_scaled_but_not_shifted():
    workspace, velocity = Workspace(LOW, HIGH, (9.0, 9.0, 9.0), 2.0), np.array((0.1, 0.0, -0.2))
    np.testing.assert_allclose(workspace.velocity_to_policy(velocity), velocity / 2)


def test_the_tool_has_a_margin_around_it():
    workspace = Workspace(LOW, HIGH, scale=2.0)
    np.testing.assert_allclose(workspace.box_low, workspace.low - MARGIN)
    np.testing.assert_allclose(workspace.box_high, workspace.high + MARGIN)


def test_goals_are_taken_only_where_the_tool_may_go():
    workspace = Workspace(LOW, HIGH, box=((0.0, 0.0, 0.0), (1.3, 2.0, 2.0)))
    np.testing.assert_array_equal(workspace.box_high, (1.3, 2.0, 2.0))
    np.testing.assert_allclose(workspace.high, (1.3, 0.8, 0.7))
    with pytest.raises(GoalError) as refused:
        workspace.admit((1.4, 0.7, 0.5))
    assert refused.value.code == 'outside_workspace'


def test_a_box_elsewhere_is_refused():
    with pytest.raises(OptionError, match=r'must overlap the workspace \(1.100.*got \(0.000'):
        Workspace(LOW, HIGH, box=((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)))


def test_a_box_upside_down_is_refused():
    with pytest.raises(OptionError, match=r'box.low must lie below'):
        Workspace(LOW, HIGH, box=((0.0, 0.0, 1.0), (2.0, 2.0, 0.0)))


@pytest.mark.parametrize('origin', [(0.5, NAN, 0.3), (0.5, 0.3), (500.0, 0.0, 0.3), 'here'])
def test_an_absurd_origin_is_refused(origin):
    with pytest.raises(OptionError, match='workspace.origin'):
        Workspace(LOW, HIGH, origin=origin)


@pytest.mark.parametrize('high', [(9.0, 0.8, 0.7), (1.101, 0.8, 0.7)])
def test_a_workspace_that_suits_no_arm_is_refused(high):
    with pytest.raises(OptionError, match=r'edges .* must be 0.01 to 5.0 m long, got'):
        Workspace(LOW, high)


def test_a_trained_workspace_that_is_none_is_refused():
    with pytest.raises(OptionError, match='trained workspace.low must lie below'):
        Workspace(HIGH, LOW)


def test_a_goal_inside_is_taken_as_it_is():
    goal = np.array((1.2, 0.7, 0.5))
    for outside in ('reject', 'project'):
        np.testing.assert_array_equal(Workspace(LOW, HIGH).admit(goal, outside), goal)


def test_a_goal_outside_is_refused_by_default():
    with pytest.raises(GoalError, match=r'\(1.100, 0.600, 0.400\) to .* got \(1.200, 0.900'):
        Workspace(LOW, HIGH).admit((1.2, 0.9, 0.5))


def test_a_goal_outside_is_moved_to_the_nearest_point_on_request():
    goal = Workspace(LOW, HIGH).admit((1.2, 0.9, -3.0), 'project')
    np.testing.assert_allclose(goal, (1.2, 0.8, 0.4))


def test_a_goal_on_a_face_but_for_rounding_is_taken():
    goal = Workspace(LOW, HIGH).admit(HIGH + 1e-7)
    np.testing.assert_allclose(goal, HIGH, rtol=1e-15)
    with pytest.raises(GoalError):
        Workspace(LOW, HIGH).admit(HIGH + 1e-5)


@pytest.mark.parametrize('outside', ['reject', 'project'])
@pytest.mark.parametrize(
    'goal',
    [(1.2, NAN, 0.5), (1.2, 0.7, float('inf')), (1.2, 0.7), (1.2, 0.7, 0.5, 0.0), 'there', None],
)
def test_a_goal_that_is_not_three_finite_numbers_is_refused(goal, outside):
    with pytest.raises(GoalError, match='three') as refused:
        Workspace(LOW, HIGH).admit(goal, outside)
    assert refused.value.code == 'bad_message'


def test_another_way_with_goals_outside_is_refused():
    with pytest.raises(OptionError, match=r"reject, project; got 'clip'"):
        Workspace(LOW, HIGH).admit((1.2, 0.7, 0.5), 'clip')


ANY = st.floats() | st.floats(-2.0, 2.0)


@pytest.mark.nightly
@given(
    st.tuples(*[st.floats(-2.0, 2.0)] * 3),
    st.floats(0.1, 5.0),
    st.tuples(ANY, ANY, ANY),
    st.sampled_from(('reject', 'project')),
)
def test_whatever_goal_comes_the_policy_is_sent_inside_what_it_knows(origin, scale, goal, outside):
    workspace = Workspace(LOW, HIGH, origin, scale)
    try:
        taken = workspace.admit(goal, outside)
    except GoalError:
        assert outside == 'reject' or not np.isfinite(goal).all()
        return
    assert ((taken >= workspace.low) & (taken <= workspace.high)).all()
    known = workspace.to_policy(taken)
    assert ((known >= LOW - 1e-9) & (known <= HIGH + 1e-9)).all()
    np.testing.assert_allclose(workspace.to_arm(known), taken, atol=1e-12)
