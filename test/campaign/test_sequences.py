"""Sequences of the campaign can be run again, and the arm that they are played on is an arm."""

from judge import Command
from live_arm import LiveArm
import numpy as np
from outside_arm import read_robot
import pytest
from sequences import draw, KINDS


def test_the_same_number_is_the_same_sequence():
    one, same, other = draw(3, 17), draw(3, 17), draw(4, 17)
    assert one.actions == same.actions
    np.testing.assert_array_equal(one.goals, same.goals)
    assert not np.array_equal(one.goals, other.goals)


def test_everything_occurs():
    drawn = [draw(1, number) for number in range(200)]
    assert {kind for sequence in drawn for kind in sequence.kinds} == set(KINDS)
    assert {sequence.policy for sequence in drawn} == {'proportional', 'wild'}
    assert {sequence.controller for sequence in drawn} == {'immediate', 'JTC', 'lag'}
    for sequence in drawn:
        times = [at for at, _, _ in sequence.actions]
        assert times == sorted(times)


@pytest.mark.parametrize('controller', ['immediate', 'JTC', 'lag'])
@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity', 'twist', 'pose'])
def test_an_arm_comes_to_where_it_is_commanded(output, controller):
    robot = read_robot('ur5e')
    arm = LiveArm(robot.arm, output, robot.home, 0.0)
    arm.controller, arm.delay = controller, 0.05
    start = robot.arm.tool(robot.home[None])[0]
    moved = {
        'joint_position': robot.home + 0.01,
        'joint_velocity': np.full(6, 0.1),
        'twist': np.array((0.0, 0.1, 0.0)),
        'pose': start + (0.0, 0.01, 0.0),
    }[output]
    for step in range(200):
        now = 0.008 * step
        if now < 0.1 or 'joint_position' == output:
            arm.take(Command(now, moved, 0.008))
        arm.advance(now)
        assert step > 6 or not arm.velocities.any()
    assert np.abs(arm.velocities).max() < 1e-3
    if output == 'joint_position':
        np.testing.assert_allclose(arm.positions, moved, atol=1e-4)
    else:
        assert np.linalg.norm(robot.arm.tool(arm.positions[None])[0] - start) > 0.005


def test_a_blocked_arm_stays_and_catches_up_slowly():
    robot = read_robot('ur5e')
    arm = LiveArm(robot.arm, 'joint_position', robot.home, 0.0)
    arm.is_blocked = True
    arm.take(Command(0.0, robot.home + 0.1))
    arm.advance(0.1)
    np.testing.assert_array_equal(arm.positions, robot.home)
    arm.is_blocked = False
    arm.advance(0.2)
    np.testing.assert_allclose(arm.positions, robot.home + 0.05)
    arm.advance(0.4)
    np.testing.assert_allclose(arm.positions, robot.home + 0.1)
