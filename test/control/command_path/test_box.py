"""A tool that leaves its box, whatever it was told, is stopped; one outside may come back."""

import contextlib
import itertools

from command_path_arm import CommandPathArm, joint_velocities, TICK
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.reachability import Reachability
from mher_ros.control.safety_monitor import BOX_SLACK, Status
from mher_ros.robots.workspace import GoalError
import numpy as np
import pytest

ARRIVED = 5e-3
"""How near an arm comes to every goal that it is said to be able to reach [m]."""
CARRIED = 5e-3
"""How far an arm that is commanded by velocities may be carried out of its box [m]."""
OUTPUTS = ('twist', 'pose', 'joint_position', 'joint_velocity')


def arm_near_a_face(output, distance):
    """Return an arm whose tool is this far inside its box, below the upper face [m]."""
    tool = CommandPathArm(output).tool
    box = tool - 0.15, tool + (0.15, 0.15, distance)
    arm = CommandPathArm(output, box=box)
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
        if arm.monitor.status is Status.RUNNING:
            farthest = max(farthest, outside(arm))
    assert arm.monitor.status is Status.OUTSIDE_BOX
    assert 0.01 < farthest < BOX_SLACK + 0.01
    assert arm.controller.goal is None
    assert arm.run(20) == [None] * 20


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_starts_outside_comes_back(output):
    arm = arm_near_a_face(output, -0.05)
    arm.run(400)
    assert arm.monitor.status is Status.RUNNING
    assert outside(arm) < 0.0
    assert arm.controller.reached


def test_a_tool_that_starts_outside_is_stopped_when_it_moves_farther_out():
    arm = arm_near_a_face('twist', -0.05)
    move = arm._move
    arm._move = lambda command, seconds: move(command, -seconds)
    while not arm.tick().is_stop:
        if arm.monitor.status is Status.RUNNING:
            assert outside(arm) < 0.05 + BOX_SLACK + 0.01
    assert arm.monitor.status is Status.OUTSIDE_BOX


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_came_back_is_stopped_when_it_is_taken_out_again(output):
    arm = arm_near_a_face(output, -0.05)
    while outside(arm) > -0.01:
        arm.tick()
    arm.is_stuck = True
    for _ in range(20):
        push_up(arm, 0.004)
        arm.tick()
        if arm.monitor.status is not Status.RUNNING:
            break
    assert arm.monitor.status is Status.OUTSIDE_BOX
    assert outside(arm) < BOX_SLACK + 0.01
    assert arm.brake().is_stop


@pytest.mark.parametrize('output', OUTPUTS)
def test_a_tool_that_was_pushed_out_in_a_pause_comes_back(output):
    arm = arm_near_a_face(output, 0.01)
    arm.run(10)
    arm.path.monitor.drop_goal('a pause')
    assert arm.brake().is_stop
    arm.last_command = None
    arm.pass_time(1.2)
    push_up(arm, 0.06)
    assert outside(arm) > BOX_SLACK
    arm.run(25)
    arm.controller.take_goal(arm.now, arm.workspace.low)
    arm.run(400)
    assert arm.monitor.status is Status.RUNNING
    assert arm.controller.reached


def push_up(arm, way):
    """Move the tool up by so much [m], against what the arm is told."""
    for _ in range(10):
        step = joint_velocities(arm.model, arm.positions, np.array((0.0, 0.0, way / 10)))
        arm.positions[: len(step)] += step


TASKS = {
    'fetch': 'fetch_reach',
    'sawyer': 'sawyer_reach',
    'ur5e': 'fetch_reach',
    'panda': 'fetch_reach',
}


@pytest.mark.parametrize('output', ['joint_trajectory', 'joint_velocity', 'pose', 'twist'])
@pytest.mark.parametrize('name', TASKS)
def test_goals_on_the_faces_of_the_box_are_reached_from_each_other(name, output):
    space = CommandPathArm(output, name, TASKS[name]).workspace
    low, high = np.maximum(space.low, space.box_low), np.minimum(space.high, space.box_high)
    # The box ends where the goals do; Fetch's shoulder is at its limit there, and needs more.
    box = (space.box_low, space.box_high) if name == 'fetch' else (low, high)
    arm = CommandPathArm(output, name, TASKS[name], box=box)
    is_velocity = output in ('twist', 'joint_velocity')
    reachability = Reachability(arm.model)
    arm.rest()
    taken = 0
    for corner in itertools.product((0, 1), repeat=3):
        goal = np.where(corner, high, low)
        try:
            reachability.check_goal(goal, arm.positions, arm.path.held_orientation)
        except GoalError:
            continue
        arm.controller.take_goal(arm.now, goal)
        taken += 1
        allowed = max(CARRIED if is_velocity else 1e-6, beyond(arm.tool, *box))
        while np.linalg.norm(arm.tool - goal) > ARRIVED:
            command = arm.tick()
            assert arm.monitor.status is Status.RUNNING, f'{corner}: {arm.monitor.reason}'
            assert beyond(arm.tool if is_velocity else command.tool_position, *box) <= allowed
    assert taken > 5


def beyond(place, low, high):
    return float(max((low - place).max(), (place - high).max()))


@pytest.mark.parametrize('output', ['joint_position', 'pose'])
def test_a_set_point_stays_in_the_box_at_the_highest_limits(output):
    limits = MotionLimits(speed=2.0, acceleration=20.0)
    random = np.random.default_rng(1)
    arm = CommandPathArm(output, 'ur5e', 'fetch_reach', limits=limits)
    space = arm.workspace
    arm.start(space.low)
    for _ in range(40):
        arm.policy = always(arm, random.uniform(-1.0, 1.0, 3))
        arm.controller.take_goal(arm.now, random.uniform(space.low, space.high))
        for command in filter(None, arm.run(random.integers(5, 40))):
            place = command.tool_position
            assert (place >= space.box_low - 1e-6).all() and (place <= space.box_high + 1e-6).all()


@pytest.mark.parametrize(
    ('output', 'late', 'seeds'),
    [
        ('twist', 'commands', (16, 23, 43)),
        ('joint_velocity', 'commands', (6, 8, 19)),
        ('twist', 'arm', (1, 2)),
        ('joint_velocity', 'arm', (1, 2)),
    ],
)
def test_an_arm_that_is_commanded_by_velocities_stays_near_its_box(output, late, seeds):
    gaps = (TICK,) * 5 + (0.08 if late == 'commands' else TICK,)
    for seed in seeds:
        random = np.random.default_rng(seed)
        arm = CommandPathArm(output, 'ur5e', 'fetch_reach')
        arm.delay = 0.15 if late == 'arm' else 0.0
        space, free = arm.workspace, arm.policy
        arm.start(space.low)
        farthest = -np.inf
        for _ in range(500):
            chance = random.random()
            if chance < 0.03:
                part = random.integers(0, 2, 3) if random.random() < 0.5 else random.random(3)
                with contextlib.suppress(GoalError):
                    goal = space.low + part * (space.high - space.low)
                    arm.controller.take_goal(arm.now, goal, 'project')
            elif chance < 0.08:
                arm.policy = free
                if random.random() < 0.8:
                    arm.policy = always(arm, random.uniform(-1.0, 1.0, 3))
            arm.tick(random.choice(gaps))
            farthest = max(farthest, beyond(arm.tool, space.box_low, space.box_high))
        assert farthest < BOX_SLACK


def always(arm, action):
    """Return a policy that wants the same whatever it sees."""
    whole = np.zeros(len(arm.interface.action), np.float32)
    whole[:3] = action
    return lambda observation, goal: whole
