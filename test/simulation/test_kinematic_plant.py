"""Any arm with a URDF, moved without forces."""

import dataclasses

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot, RobotError
from mher_ros.simulation.drives import ACCELERATION
from mher_ros.simulation.kinematic_plant import KinematicPlant
import numpy as np
import pytest


@pytest.fixture(params=['panda', 'ur5e'])
def robot(request):
    return load_robot(request.param)


@pytest.fixture
def plant(robot):
    return KinematicPlant(robot)


@pytest.fixture
def arm(robot):
    return ArmModel(robot.simulated())


def commanded(plant):
    """Return positions and velocities of the commanded joints."""
    places = [plant.joint_names.index(name) for name in plant.command_names]
    return [values[places] for values in plant.joint_state()]


def test_it_starts_at_home_at_rest(plant, robot):
    positions, velocities = commanded(plant)
    np.testing.assert_array_equal(positions, [robot.home[name] for name in robot.joints])
    np.testing.assert_array_equal(velocities, 0.0)
    assert plant.frame == robot.base_frame
    assert plant.command_names == robot.joints


def test_joints_go_where_they_are_told_within_velocity_and_acceleration(plant, arm):
    rng = np.random.default_rng(0)
    fastest = np.zeros(len(arm.joint_names))
    for _ in range(6):
        target = np.clip(rng.uniform(-2.0, 2.0, fastest.size), arm.lower, arm.upper)
        before = commanded(plant)
        for _ in range(400):
            plant.advance(target)
            positions, velocities = commanded(plant)
            fastest = np.maximum(fastest, np.abs(velocities))
            change = np.abs(velocities - before[1]) / plant.period
            assert change.max() <= ACCELERATION + 1e-9
            # What is told to be the speed is how fast it goes.
            mean = (positions - before[0]) / plant.period
            assert np.abs(mean - velocities).max() <= ACCELERATION * plant.period
            before = positions, velocities
        np.testing.assert_allclose(positions, target, atol=1e-3)
    assert (fastest <= arm.velocity_limits + 1e-12).all()
    assert (fastest > 0.5 * arm.velocity_limits).any()


def test_a_set_point_beyond_the_range_leads_to_its_end(plant, arm):
    for _ in range(1000):
        plant.advance(np.full(len(arm.joint_names), 100.0))
    positions, _ = commanded(plant)
    assert (positions <= arm.upper).all()
    np.testing.assert_allclose(positions, arm.upper, atol=1e-3)


def test_without_a_command_the_last_one_stays_in_force(plant):
    start, _ = commanded(plant)
    plant.advance(start + 0.2)
    for _ in range(300):
        plant.advance(None)
    np.testing.assert_allclose(commanded(plant)[0], start + 0.2, atol=1e-3)


def test_a_reset_brings_it_back_and_forgets_what_was_asked(plant):
    start, _ = commanded(plant)
    for _ in range(20):
        plant.advance(start + 0.3)
    plant.reset()
    for _ in range(10):
        plant.advance(None)
    np.testing.assert_array_equal(commanded(plant)[0], start)


def test_the_tool_is_told_and_drawn_where_the_joints_put_it(plant, robot, arm):
    start, _ = commanded(plant)
    rng = np.random.default_rng(0)
    for _ in range(5):
        for _ in range(50):
            plant.advance(start + rng.uniform(-0.3, 0.3))
        position, orientation = plant.tool_pose()
        np.testing.assert_array_equal(position, arm.tool_pose(commanded(plant)[0])[0])
        drawn = plant.data.body(robot.tool_frame)
        np.testing.assert_allclose(drawn.xpos, position, atol=1e-12)
        assert abs(drawn.xquat @ orientation) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize('command', [np.zeros(3), np.full(6, np.nan), np.full(7, np.nan)])
def test_a_command_that_makes_no_sense_is_refused(plant, command):
    with pytest.raises(ValueError, match='finite joint positions .* got'):
        plant.advance(command)


def test_a_home_that_the_arm_does_not_have_is_refused(robot):
    joint = robot.joints[-1]
    far = dataclasses.replace(robot, home={**robot.home, joint: 9.0})
    with pytest.raises(RobotError, match=rf'home\.{joint} is from .* got 9'):
        KinematicPlant(far)
    foreign = dataclasses.replace(robot, home={**robot.home, 'knee': 0.0})
    with pytest.raises(RobotError, match='home takes joints of the model .*; got knee'):
        KinematicPlant(foreign)


def test_its_description_leads_to_the_same_arm(plant, robot, arm):
    text = plant.description('any')
    told = ArmModel(robot, text)
    assert told.state_names == arm.state_names
    np.testing.assert_array_equal(told.velocity_limits, arm.velocity_limits)
    start, _ = commanded(plant)
    np.testing.assert_array_equal(told.tool_pose(start)[0], arm.tool_pose(start)[0])
    assert 'filename="file:///' in text
    assert 'package://' not in text
