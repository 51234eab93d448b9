"""Near a singularity the arm slows down, stops or passes, and its joints never jump."""

import dataclasses

from arm_models import load_arm
from hypothesis import given
from hypothesis import strategies as st
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.control.safety_monitor import Status
from mher_ros.robots.arm_model import ArmModel, TOOL
from mher_ros.robots.singularity import SingularityOptions
from mher_ros.robots.workspace import Workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest

PERIOD = 0.01
SPEED = 0.25
WRIST = (-1.0, 0.0, 0.0)
"""Direction in which the tool of ur5e passes a singularity of the wrist, from home."""


class Arm:
    """An arm that does as it is commanded, with Jacobians and differences of the test's own."""

    def __init__(self, name, **options):
        robot, _ = load_arm(name)
        robot = dataclasses.replace(robot.simulated(), singularity=SingularityOptions(**options))
        self.arm = ArmModel(robot)
        self.data, self.site = mujoco.MjData(self.arm.model), self.arm.model.site(TOOL).id
        self.positions = np.array([robot.home[joint] for joint in self.arm.joint_names])
        self.start()

    def start(self):
        """Begin a motion where the arm is."""
        limiter = MotionLimiter(MotionLimits(speed=SPEED), np.full(3, -3.0), np.full(3, 3.0))
        self.filter = JointFilter(self.arm, limiter, PERIOD, False)
        self.filter.begin(self.positions)
        self.last = np.zeros(len(self.positions))

    def step(self, asked):
        """Carry out one command; return condition number and tool speed [m/s] after it."""
        self.filter.prepare(self.positions)
        self.filter.advance(asked)
        moved = self.filter.joint_positions - self.positions
        velocity, tool = moved / PERIOD, self.tool()
        self.positions = self.filter.joint_positions.copy()
        assert (np.abs(velocity) <= self.arm.velocity_limits * (1 + 1e-6)).all()
        change = np.abs(velocity - self.last) / PERIOD
        assert (change <= self.arm.acceleration_limits * (1 + 1e-6)).all()
        self.last = velocity
        return self.condition(), np.linalg.norm(self.tool() - tool) / PERIOD

    def move(self, direction, seconds):
        """Ask for a motion at full speed; return conditions and tool speeds (n, 2)."""
        asked = ToolVelocity(SPEED * np.array(direction))
        return np.array([self.step(asked) for _ in range(round(seconds / PERIOD))])

    def tool(self):
        self.data.qpos[:] = self.positions[self.arm.order]
        mujoco.mj_kinematics(self.arm.model, self.data)
        return self.data.site_xpos[self.site].copy()

    def condition(self):
        """Return the condition number by differences of the tool's pose, angles times 0.3 m."""
        rows, here = [], self.pose(self.positions)
        for joint in range(len(self.positions)):
            there = self.positions.copy()
            there[joint] += 1e-6
            rows.append((self.pose(there) - here) / 1e-6)
        values = np.linalg.svd(np.array(rows), compute_uv=False)
        return values[0] / max(values[-1], 1e-9)

    def pose(self, positions):
        """Return position [m] and rotation of the tool, from the last one, times 0.3 m (6,)."""
        self.data.qpos[:] = positions[self.arm.order]
        mujoco.mj_kinematics(self.arm.model, self.data)
        turn = self.data.site_xmat[self.site].reshape(3, 3)
        if positions is self.positions:
            self.turn = turn.copy()
        rest = turn @ self.turn.T
        angles = 0.5 * np.array(
            (rest[2, 1] - rest[1, 2], rest[0, 2] - rest[2, 0], rest[1, 0] - rest[0, 1])
        )
        return np.concatenate((self.data.site_xpos[self.site], 0.3 * angles))


def test_an_arm_that_passes_does_not_slow_down():
    conditions, speeds = Arm('ur5e', action='pass').move(WRIST, 3.0).T
    assert conditions.max() > 200.0
    assert speeds[conditions > 60.0].min() > 0.8 * SPEED


def test_an_arm_slows_down_and_passes():
    arm = Arm('ur5e')
    conditions, speeds = arm.move(WRIST, 5.0).T
    peak = conditions.argmax()
    assert conditions[peak] > 200.0
    near = (conditions > 90.0)[:peak]
    assert near.any() and speeds[:peak][near].max() < 0.5 * SPEED
    assert speeds[peak:].max() > 0.9 * SPEED


def test_an_arm_stops_and_can_leave():
    arm = Arm('ur5e', action='stop')
    conditions, speeds = arm.move(WRIST, 5.0).T
    assert conditions.max() < 1.1 * 60.0
    assert speeds[-100:].max() < 0.02 * SPEED
    assert 'condition' in arm.filter.singularity
    back, speeds = arm.move(-np.array(WRIST), 1.0).T
    assert speeds[30:].min() > 0.8 * SPEED
    assert back[-1] < 30.0
    assert arm.filter.singularity == ''


def test_thresholds_are_those_of_the_robot_file():
    conditions, _ = Arm('ur5e', action='stop', slow_at=8.0, stop_at=12.0).move(WRIST, 5.0).T
    assert conditions.max() < 1.1 * 12.0


def test_joint_velocities_are_not_slowed_down():
    slow, free = Arm('ur5e', action='stop', slow_at=1.0, stop_at=1.1), Arm('ur5e', action='pass')
    for _ in range(50):
        asked = JointVelocities(np.full(6, 0.1))
        assert slow.step(asked) == free.step(asked)


def test_a_goal_behind_a_singularity_is_dropped_and_the_status_says_why():
    options = SingularityOptions(action='stop')
    robot = dataclasses.replace(load_arm('ur5e')[0], singularity=options)
    world = DynamicArm(robot, 'joint_position')
    start = world.tool_position()
    goal = start + 0.6 * np.array(WRIST)
    space = Workspace(start - 1.0, start + 1.0, None, 1.0)
    interface = make('fetch_reach').interface
    controller = GoalController(None, interface, world.arm, space, 'joint_position')
    world.settle(controller.path)
    controller.take_goal(world.now, goal)
    end = world.now + 20.0
    while controller.goal is not None and world.now < end:
        world.step(controller.path)
    assert controller.path.monitor.last_drop == Status.NEAR_SINGULARITY.code
    assert np.linalg.norm(world.tool_position() - goal) > 0.1


@pytest.mark.nightly
@pytest.mark.parametrize('name', ['ur5e', 'panda'])
@given(
    start=st.lists(st.floats(-1.0, 1.0), min_size=7, max_size=7),
    directions=st.lists(
        st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), min_size=1, max_size=3
    ),
    action=st.sampled_from(('slow', 'stop', 'pass')),
)
def test_joints_never_jump_near_a_singularity(name, start, directions, action):
    arm = ARMS[name, action]
    count = len(arm.positions)
    # The wrist and the elbow are stretched up to a small angle: most singularities are there.
    span = np.where(np.arange(count) < 2, 1.0, 0.1)
    middle = np.clip(0.0, arm.arm.lower + 0.2, arm.arm.upper - 0.2)
    arm.positions = np.clip(
        middle + span * np.array(start[:count]), arm.arm.lower + 0.01, arm.arm.upper - 0.01
    )
    arm.start()
    for direction in directions:
        arm.move(direction, 0.4)  # ``step`` asserts the limits


ARMS = {
    (name, action): Arm(name, action=action)
    for name in ('ur5e', 'panda')
    for action in ('slow', 'stop', 'pass')
}
