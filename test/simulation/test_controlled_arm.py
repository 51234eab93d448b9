"""A simulated arm under the commands that real controllers take, with their delay and lag."""

from arm_models import load_arm
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
import mujoco
import numpy as np
import pytest


@pytest.fixture(params=['panda', 'ur5e', 'fetch'])
def name(request):
    return request.param


def make(name, **options):
    robot, model = load_arm(name)
    task = robot.simulation_task
    return ControlledArm(JointPlant(task) if task else KinematicPlant(robot), model, **options)


def joints(arm):
    """Return positions and velocities of the commanded joints."""
    places = [arm.joint_names.index(name) for name in arm.command_names]
    return [values[places] for values in arm.joint_state()]


def run(arm, controller, command, seconds):
    arm.controller = controller
    for _ in range(round(seconds / arm.period)):
        arm.advance(None if command is None else np.array(command))


def angle(one, other):
    """Return the angle between two orientations [rad]."""
    return 2.0 * np.arccos(min(1.0, abs(one @ other)))


@pytest.mark.parametrize('velocity', [(0.1, 0.0, 0.0), (0.0, -0.1, 0.05), (0.0, 0.0, -0.1)])
def test_a_twist_moves_the_tool_along_a_line_that_keeps_its_orientation(name, velocity):
    arm = make(name)
    start, orientation = arm.tool_pose()
    run(arm, 'twist', velocity, 1.0)
    end, turned = arm.tool_pose()
    np.testing.assert_allclose(end - start, velocity, atol=0.012)
    assert angle(orientation, turned) < 0.02
    run(arm, 'twist', None, 1.0)
    rest, _ = arm.tool_pose()
    assert np.linalg.norm(rest - end) < 0.03
    assert np.abs(joints(arm)[1]).max() < 2e-3


def test_joint_velocities_are_taken_on_and_end_with_their_commands(name):
    arm = make(name)
    start, _ = joints(arm)
    wanted = np.linspace(-0.2, 0.2, start.size)
    run(arm, 'joint_velocity', wanted, 1.0)
    positions, velocities = joints(arm)
    np.testing.assert_allclose(velocities, wanted, atol=0.01)
    np.testing.assert_allclose(positions - start, wanted, atol=0.02)
    run(arm, 'joint_velocity', None, 1.0)
    assert np.abs(joints(arm)[1]).max() < 2e-3
    rest, _ = joints(arm)
    run(arm, 'joint_position', None, 1.0)
    np.testing.assert_allclose(joints(arm)[0], rest, atol=2e-3)


def test_a_joint_stops_at_the_end_of_its_range():
    arm = make('panda')
    _, model = load_arm('panda')
    run(arm, 'joint_velocity', np.full(7, 1.0), 8.0)
    positions, velocities = joints(arm)
    np.testing.assert_allclose(positions, model.upper, atol=1e-9)
    np.testing.assert_array_equal(velocities, 0.0)


def test_a_pose_is_gone_to_and_kept(name):
    arm = make(name)
    start, orientation = arm.tool_pose()
    tilt, target = np.empty(4), np.empty(4)
    mujoco.mju_axisAngle2Quat(tilt, np.array((0.0, 0.0, 1.0)), 0.2)
    mujoco.mju_mulQuat(target, tilt, orientation)
    place = start + (0.05, 0.06, 0.07)
    run(arm, 'pose', (*place, *target), 1.0)
    run(arm, 'pose', None, 2.0)
    end, turned = arm.tool_pose()
    np.testing.assert_allclose(end, place, atol=2e-3)
    assert angle(target, turned) < 0.01


def test_positions_of_joints_are_followed_as_without_a_controller():
    robot, _ = load_arm('panda')
    arm, plain = make('panda'), KinematicPlant(robot)
    target = joints(arm)[0] + 0.2
    for _ in range(30):
        arm.advance(target)
        plain.advance(target)
        np.testing.assert_array_equal(arm.joint_state(), plain.joint_state())


@pytest.mark.parametrize('controller', ['joint_position', 'joint_velocity', 'twist', 'pose'])
def test_with_a_delay_the_same_motion_comes_later(controller):
    prompt, late = make('ur5e'), make('ur5e', delay=0.15)
    place, orientation = prompt.tool_pose()
    command = {
        'joint_position': joints(prompt)[0] + 0.1,
        'joint_velocity': np.full(6, 0.1),
        'twist': np.array((0.1, 0.0, 0.0)),
        'pose': np.concatenate((place + 0.05, orientation)),
    }[controller]
    motions = []
    for arm in (prompt, late):
        arm.controller = controller
        motions.append([])
        for tick in range(60):
            arm.advance(command if tick < 40 else None)
            motions[-1].append(arm.joint_state()[0])
    start = make('ur5e').joint_state()[0]
    np.testing.assert_array_equal(motions[1][:15], np.tile(start, (15, 1)))
    np.testing.assert_array_equal(motions[1][15:], motions[0][:-15])


def test_a_lag_is_that_of_a_first_order():
    arm = make('ur5e', lag=0.1)
    wanted = 0.05
    run(arm, 'joint_velocity', np.full(6, wanted), 0.1)
    np.testing.assert_allclose(joints(arm)[1], wanted * (1.0 - np.exp(-1.0)), rtol=0.02)
    run(arm, 'joint_velocity', np.full(6, wanted), 1.0)
    np.testing.assert_allclose(joints(arm)[1], wanted, rtol=0.01)
    target = joints(arm)[0] + 0.1
    run(arm, 'joint_position', target, 2.0)
    np.testing.assert_allclose(joints(arm)[0], target, atol=1e-3)


def test_a_reset_forgets_what_is_under_way():
    arm = make('ur5e', delay=0.1, lag=0.1)
    start, _ = joints(arm)
    run(arm, 'joint_velocity', np.full(6, 0.3), 0.5)
    arm.reset()
    run(arm, 'joint_velocity', None, 0.5)
    np.testing.assert_array_equal(joints(arm)[0], start)
