"""A tool that leaves its box, whatever it was told, is stopped; one outside may come back."""

from led_arm import joint_velocities, LedArm
from mher_ros.control.safety import BOX_SLACK, Status
import numpy as np
import pytest

OUTPUTS = ('twist', 'pose', 'joint_position', 'joint_velocity')


def arm_near_a_face(output, distance):
    """Return an arm whose tool is this far inside its box, below the upper face [m]."""
    tool = LedArm(output).tool
    box = tool - 0.15, tool + (0.15, 0.15, distance)
    arm = LedArm(output, box=box)
    arm.start(arm.workspace.low)
    return arm


def outside(arm):
    return float((arm.tool - arm.workspace.box_high).max())


def test_a_tool_that_moves_out_of_its_box_is_stopped():
    arm = arm_near_a_face('twist', 0.01)
    move = arm._move
    arm._move = lambda command, seconds: move(command, -seconds)  # axes the wrong way round
    farthest = 0.0
    while not arm.tick().is_stop:
        if arm.guard.status is Status.RUNNING:
            farthest = max(farthest, outside(arm))
    assert arm.guard.status is Status.OUTSIDE_BOX
    assert 0.01 < farthest < BOX_SLACK + 0.01
    assert arm.reach.goal is None
    assert arm.run(20) == [None] * 20


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_starts_outside_comes_back(output):
    arm = arm_near_a_face(output, -0.05)
    arm.run(400)
    assert arm.guard.status is Status.RUNNING
    assert outside(arm) < 0.0
    assert arm.reach.reached


def test_a_tool_that_starts_outside_is_stopped_when_it_moves_farther_out():
    arm = arm_near_a_face('twist', -0.05)
    move = arm._move
    arm._move = lambda command, seconds: move(command, -seconds)
    while not arm.tick().is_stop:
        if arm.guard.status is Status.RUNNING:
            assert outside(arm) < 0.05 + BOX_SLACK + 0.01
    assert arm.guard.status is Status.OUTSIDE_BOX


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_came_back_is_stopped_when_it_is_taken_out_again(output):
    arm = arm_near_a_face(output, -0.05)
    while outside(arm) > -0.01:
        arm.tick()
    arm.is_stuck = True
    for _ in range(20):
        push_up(arm, 0.004)
        arm.tick()
        if arm.guard.status is not Status.RUNNING:
            break
    assert arm.guard.status is Status.OUTSIDE_BOX
    assert outside(arm) < BOX_SLACK + 0.01
    assert arm.brake().is_stop


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_was_pushed_out_in_a_pause_comes_back(output):
    arm = arm_near_a_face(output, 0.01)
    arm.run(10)
    arm.reach.guard.drop_goal('a pause')
    assert arm.brake().is_stop
    arm.told = None
    arm.pass_time(1.2)
    push_up(arm, 0.06)
    assert outside(arm) > BOX_SLACK
    arm.run(25)
    arm.reach.take_goal(arm.now, arm.workspace.low)
    arm.run(400)
    assert arm.guard.status is Status.RUNNING
    assert arm.reach.reached


def push_up(arm, way):
    """Move the tool up by so much [m], against what the arm is told."""
    for _ in range(10):
        step = joint_velocities(arm.model, arm.positions, np.array((0.0, 0.0, way / 10)))
        arm.positions[: len(step)] += step
