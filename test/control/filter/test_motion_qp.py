"""Joints that move a tool: where it gets to, and what they are never asked for."""

import dataclasses
import math

from mher_ros.control.filter.motion_qp import MotionError, MotionQP
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import Span
from mher_ros.tasks import make
import numpy as np
import pytest

PERIOD = 0.01
SPEED = 0.25
HALF_SIDE = 0.15
"""Of the cube that fetch_reach draws its goals from [m]."""
ROUNDING = 1e-6
"""What a solver may be off by [rad, rad/s]."""


def solve(motion, positions, tool_velocity, orientation):
    """Return joint velocities without limits of acceleration."""
    motion.prepare(positions, orientation)
    count = len(motion.jacobian.T)
    return motion.move(tool_velocity, np.zeros(count), np.full(count, np.inf))


def home_of(robot, model):
    return np.array([robot.home[name] for name in model.state_names])


def centre_of(robot):
    """Return the middle of the workspace: as placed, or as trained."""
    if robot.workspace.origin is not None:
        return np.array(robot.workspace.origin)
    interface = make(robot.simulation_task).interface
    return (np.array(interface.goal_low) + interface.goal_high) / 2.0


def angle_between(first, second):
    """Return the angle between two orientations [degrees]."""
    return math.degrees(2.0 * math.acos(min(1.0, abs(first @ second))))


def towards(goal, position):
    """Return a velocity straight to the goal that slows down before it."""
    way = goal - position
    return way * min(SPEED / max(np.linalg.norm(way), 1e-9), 5.0)


def test_goals_of_the_trained_size_are_reached_with_the_tool_held(any_arm):
    robot, model = any_arm
    motion, home = MotionQP(model), home_of(robot, model)
    _, held = model.tool_pose(home)
    half = HALF_SIDE * robot.workspace.scale
    goals = np.random.default_rng(0).uniform(-half, half, (100, 3)) + centre_of(robot)
    reached, tilts = 0, []
    for goal in goals:
        positions = home.copy()
        for _ in range(400):
            position, orientation = model.tool_pose(positions)
            if np.linalg.norm(goal - position) < 0.005:
                reached += 1
                break
            velocity = towards(goal, position)
            positions = positions + PERIOD * solve(motion, positions, velocity, held)
        tilts.append(angle_between(orientation, held))
    assert reached >= 95
    if len(robot.joints) < 6:
        return  # its orientation gives way
    # Fetch's shoulder is at its limit for the nearest of them, and the pull home tilts the tool.
    # The joints of kinova are slow: they are at their speed limits.
    assert max(tilts) < (9.0 if robot.name in ('fetch', 'kinova') else 3.0)


def test_limits_hold_at_every_tick_whatever_is_asked(any_arm):
    robot, model = any_arm
    motion, rng = MotionQP(model), np.random.default_rng(1)
    positions = home_of(robot, model)
    met = np.zeros(2, bool)
    for _ in range(60):
        # Far out of reach, at any speed, with any orientation.
        goal = rng.uniform(-3.0, 3.0, 3)
        held = rng.normal(size=4)
        held /= np.linalg.norm(held)
        speed, period = rng.uniform(0.0, 4.0), rng.choice((0.002, 0.01, 0.05))
        for _ in range(50):
            way = goal - model.tool_pose(positions)[0]
            velocity = speed * way / np.linalg.norm(way)
            velocities = solve(motion, positions, velocity, held)
            assert (np.abs(velocities) <= model.velocity_limits + ROUNDING).all()
            positions = positions + period * velocities
            assert (positions <= model.upper + ROUNDING).all()
            assert (positions >= model.lower - ROUNDING).all()
            met |= (
                (np.abs(velocities) > 0.999 * model.velocity_limits).any(),
                min((positions - model.lower).min(), (model.upper - positions).min()) < 0.05,
            )
    # Else nothing was tested. The fast joints of the small so101 do not come to their limits.
    assert met[robot.name == 'so101' :].all()


def test_the_tool_moves_as_asked_where_nothing_is_in_the_way(any_arm):
    robot, model = any_arm
    motion, positions = MotionQP(model), home_of(robot, model)
    _, held = model.tool_pose(positions)
    for wanted in np.vstack((np.eye(3), -np.eye(3))) * 0.05:
        _, velocity = model.tool(positions, solve(motion, positions, wanted, held))
        # The damping slows a small arm down.
        np.testing.assert_allclose(velocity, wanted, atol=0.01 if robot.name == 'so101' else 0.002)


def test_a_tool_that_is_to_stand_still_does(any_arm):
    robot, model = any_arm
    positions = home_of(robot, model)
    _, held = model.tool_pose(positions)
    still = solve(MotionQP(model), positions, np.zeros(3), held)
    np.testing.assert_allclose(still, 0.0, atol=1e-9)


def test_a_tilted_tool_is_turned_back_without_being_moved(any_arm):
    robot, model = any_arm
    motion, positions = MotionQP(model), home_of(robot, model)
    _, held = model.tool_pose(positions)
    positions[4:] += 0.1
    start, tilted = model.tool_pose(positions)
    assert angle_between(tilted, held) > 3.0
    for _ in range(200):
        positions = positions + PERIOD * solve(motion, positions, np.zeros(3), held)
    end, orientation = model.tool_pose(positions)
    assert angle_between(orientation, held) < 0.5
    assert np.linalg.norm(end - start) < 0.01


@pytest.mark.parametrize('beyond', [0.02, 1.0])
def test_a_joint_beyond_its_limit_may_only_move_back(arm, beyond):
    robot, model = arm('panda')
    motion, positions = MotionQP(model), home_of(robot, model)
    positions[3] = model.lower[3] - beyond
    _, held = model.tool_pose(positions)
    rng = np.random.default_rng(0)
    moved = [solve(motion, positions, rng.uniform(-0.2, 0.2, 3), held)[3] for _ in range(50)]
    assert min(moved) >= -ROUNDING
    assert max(moved) > 0.01
    still = solve(motion, positions, np.zeros(3), held)
    assert -ROUNDING <= still[3] < 0.05  # it is not torn back
    np.testing.assert_allclose(model.tool(positions, still)[1], 0.0, atol=0.002)


def test_a_joint_slows_down_before_its_limit(arm):
    robot, model = arm('panda')
    motion, positions = MotionQP(model), home_of(robot, model)
    positions[3] = model.lower[3] + 0.1
    _, held = model.tool_pose(positions)
    inwards = np.array((-1.0, 0.0, 0.0))  # folds the elbow
    speed = -solve(motion, positions, inwards, held)[3]
    assert 0.1 < speed < 0.4
    # At half of its acceleration it comes to rest before the limit, after 0.2 s as before.
    assert 0.2 * speed + speed**2 / model.acceleration_limits[3] == pytest.approx(0.1, abs=1e-3)


def test_joints_change_their_velocities_by_no_more_than_they_may(arm):
    robot, model = arm('ur5e')
    motion, positions = MotionQP(model), home_of(robot, model)
    _, held = model.tool_pose(positions)
    last, change = np.linspace(-0.3, 0.3, 6), np.full(6, 0.04)
    motion.prepare(positions, held)
    for wanted in np.vstack((np.eye(3), -np.eye(3))) * 0.2:
        found = motion.move(wanted, last, change)
        assert (np.abs(found - last) <= change + ROUNDING).all()
        assert (np.abs(found - last) > 0.9 * change).any()


def test_joints_that_are_not_commanded_are_left_alone(arm):
    robot, whole = arm('panda')
    fixed, moved = 'panda_joint3', [name for name in robot.joints if name != 'panda_joint3'][::-1]
    fewer = ArmModel(dataclasses.replace(robot.simulated(), joints=tuple(moved)))
    assert fewer.state_names == (*moved, fixed)
    positions = home_of(robot, fewer)
    position, held = fewer.tool_pose(positions)
    wanted = np.array((0.03, 0.05, -0.03))
    velocities = solve(MotionQP(fewer), positions, wanted, held)
    assert velocities.shape == (6,)
    _, velocity = fewer.tool(positions, np.append(velocities, 0.0))
    np.testing.assert_allclose(velocity, wanted, atol=0.002)


def test_tighter_limits_of_the_robots_file_are_kept(arm):
    robot, _ = arm('ur5e')
    slow = dict.fromkeys(robot.joints, Span(velocity=0.05))
    model = ArmModel(dataclasses.replace(robot.simulated(), joint_limits=slow))
    positions = home_of(robot, model)
    _, held = model.tool_pose(positions)
    velocities = solve(MotionQP(model), positions, np.array((0.3, 0.0, 0.0)), held)
    assert np.abs(velocities).max() == pytest.approx(0.05, abs=ROUNDING)


@pytest.mark.parametrize('place', range(3))
@pytest.mark.parametrize('bad', [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused(arm, place, bad):
    robot, model = arm('ur5e')
    held = np.array((1.0, 0.0, 0.0, 0.0))
    arguments = [home_of(robot, model), np.zeros(3), held]
    arguments[place][1] = bad
    with pytest.raises(MotionError, match='finite'):
        solve(MotionQP(model), *arguments)


def test_wrong_shapes_are_refused(arm):
    _, model = arm('ur5e')
    with pytest.raises(MotionError, match='6 positions and an orientation'):
        solve(MotionQP(model), np.zeros(7), np.zeros(3), np.zeros(4))
