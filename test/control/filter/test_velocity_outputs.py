"""Arms that are commanded by velocities of their joints, and are slow to obey."""

import dataclasses

from mher_ros.control.action_controller import ActionController
from mher_ros.control.command_path import CommandPath
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.motion import ToolVelocity
from mher_ros.control.safety_monitor import Status
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import GoalError
from mher_ros.simulation.reach import Reach
import numpy as np
import pytest

TICK = 0.001
STATES, ACTIONS = 10, 40
"""Ticks between two joint states, and between two actions."""
WATCHDOG = 0.1
"""Time without a command after which the drives stop by themselves [s]."""
BEYOND = 0.002
"""By how much a joint may leave its range [rad]."""


class Drives:
    """Joints that take on velocities late, and stop at nothing: not even at their limits."""

    def __init__(self, robot, joint_speed=0.5, **changes):
        options = dataclasses.replace(Reach.default_options, robot=robot, joint_speed=joint_speed)
        self.task = Reach(options)
        self.arm = self.task.arm
        if changes:
            robot = dataclasses.replace(load_robot(robot), **changes)
            self.arm = ArmModel(robot.simulated())
        self.positions = self.task.joint_state()[0].copy()
        self.count = len(self.arm.joint_names)
        self._history = [np.zeros(self.count)]
        self._commanded_at = -np.inf
        self.now = 0.0
        self.beyond = -np.inf
        self.is_blocked = np.zeros(self.count, bool)

    def run(self, path, seconds, delay=0.0, act=lambda now: None, hold_at=np.inf, hold=0.0):
        """Move as commanded, ``delay`` [s] late; hold the node up once, when near a limit."""
        end, held_until, has_held = self.now + seconds, -np.inf, False
        for tick in range(round(seconds / TICK)):
            self.now += TICK
            late = self._history[-min(len(self._history), 1 + round(delay / TICK))]
            velocities = np.where(self.is_blocked, 0.0, late)
            self.positions[: self.count] += velocities * TICK
            joints = self.positions[: self.count]
            over = np.maximum(joints - self.arm.upper, self.arm.lower - joints).max()
            self.beyond = max(self.beyond, over)
            if not has_held and over > -hold_at:
                has_held, held_until = True, self.now + hold
            last = self._history[-1]
            if self.now - self._commanded_at > WATCHDOG:
                last = np.zeros(self.count)
            self._history.append(last)
            if self.now < held_until:
                continue
            if tick % STATES == 0:
                speeds = np.zeros_like(self.positions)
                speeds[: self.count] = velocities
                path.take_state(self.now, round(self.now * 1e9), self.positions.copy(), speeds)
            if tick % ACTIONS == 0:
                act(self.now)
            command = path.tick(self.now)
            if command is not None:
                self._history[-1], self._commanded_at = command.joint_velocities, self.now
                path.plan(self.now)
        assert self.now >= end - TICK


def towards_its_limit(robot, joint, speed, **changes):
    """Return drives 1 rad from a limit of one joint, and what asks for motions towards it."""
    drives = Drives(robot, speed, **changes)
    task, action = drives.task, np.zeros(drives.count)
    drives.positions[joint], action[joint] = drives.arm.upper[joint] - 1.0, 1.0
    controller = ActionController(
        task.interface, drives.arm, task.workspace, 'joint_velocity', limits=task.limits
    )

    def act(now):
        try:
            controller.act(now, action)
        except GoalError:
            pass

    return drives, controller.path, act


@pytest.mark.parametrize('delay', [0.0, 0.05, 0.1, 0.15])
@pytest.mark.parametrize(('robot', 'joint', 'speed'), [
    ('ur5e', 5, 0.5),
    ('ur5e', 5, 1.0),
    ('panda', 6, 1.5),
])  # fmt: skip
def test_joints_of_a_late_arm_keep_their_ranges(robot, joint, speed, delay):
    drives, path, act = towards_its_limit(robot, joint, speed)
    drives.run(path, 4.0, delay, act)
    assert drives.beyond < BEYOND
    assert drives.beyond > -0.1  # and they come near to their limit
    assert path.monitor.status is Status.RUNNING


@pytest.mark.parametrize(('reaction_time', 'keeps'), [(0.1, False), (0.3, True), (0.5, True)])
def test_joints_of_a_very_late_arm_keep_their_ranges_if_that_is_known(reaction_time, keeps):
    drives, path, act = towards_its_limit('ur5e', 5, 0.5, reaction_time=reaction_time)
    drives.run(path, 4.0, 0.3, act)
    assert drives.beyond < BEYOND if keeps else drives.beyond > 10.0 * BEYOND
    assert drives.beyond > -0.1


@pytest.mark.parametrize('distance', [0.1, 0.2, 0.335, 0.5])
@pytest.mark.parametrize(('robot', 'joint', 'speed'), [('ur5e', 5, 1.5), ('panda', 6, 0.5)])
def test_joints_keep_their_ranges_if_a_command_is_late(robot, joint, speed, distance):
    drives, path, act = towards_its_limit(robot, joint, speed)
    drives.run(path, 4.0, 0.0, act, hold_at=distance, hold=0.09)
    assert drives.beyond < BEYOND


@pytest.mark.parametrize('delay', [0.0, 0.05, 0.1, 0.15])
@pytest.mark.parametrize('axis', [0, 2])
def test_motions_of_the_tool_keep_the_ranges_of_joints_of_a_late_arm(axis, delay):
    drives = Drives('panda')
    asked = ToolVelocity(-0.25 * np.eye(3)[axis])

    class Asking:
        def begin(self, now):
            pass

        def ask(self, now):
            return asked

        def progress(self, tool):
            return 0.0, 0.0

    box = np.full(3, -3.0), np.full(3, 3.0)
    path = CommandPath(Asking(), drives.arm, box, 'joint_velocity', limits=MotionLimits())
    drives.run(path, 0.01)
    path.monitor.take_goal(drives.now)
    drives.run(path, 6.0, delay)
    assert drives.beyond < BEYOND


def test_a_joint_that_does_not_move_is_noticed_though_the_tool_hardly_shows_it():
    drives, path, act = towards_its_limit('ur5e', 5, 1.0)
    drives.is_blocked[5] = True
    stops = []

    def try_to(now):
        if path.monitor.status is Status.NOT_FOLLOWING:
            stops.append(now)
        else:
            act(now)

    drives.run(path, 3.0, 0.0, try_to)
    assert stops


@pytest.mark.parametrize('delay', [0.0, 0.15])
def test_joints_that_move_late_are_not_taken_for_blocked(delay):
    drives, path, _ = towards_its_limit('ur5e', 5, 1.0)
    drives.positions[5] = 0.0
    random, task = np.random.default_rng(2), drives.task
    controller = ActionController(
        task.interface, drives.arm, task.workspace, 'joint_velocity', limits=task.limits
    )

    def act(now):
        controller.act(now, random.uniform(-1.0, 1.0, drives.count))

    drives.run(controller.path, 6.0, delay, act)
    assert controller.path.monitor.status is Status.RUNNING
