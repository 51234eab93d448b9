"""A policy that sees a measured pose of the tool: what it does at its goal, and what stops it."""

import dataclasses

from mher_ros.control.fit import check_fit, check_robot, FitError
from mher_ros.control.goal_controller import AWAY, GoalController
from mher_ros.control.safety_monitor import SafetyMonitor, SafetyOptions, Status
from mher_ros.policy.onnx_policy import load
from mher_ros.robots.robot import load_robot, ToolPose
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.tracker import TrackerOptions
import numpy as np
from proportional_policy import write_proportional_policy
import pytest

SECOND = 1_000_000_000
PERIOD = 0.01
WRONG = TrackerOptions(
    camera_turn=(20.0, 0.0, 120.0), tool_offset_error=(0.0, 0.06, 0.08), link_error=0.03
)
OPTIONS = ReachOptions(50, 0.05, robot='ur5e', tool_pose='topic', tracker=WRONG)
TRACKED = dataclasses.replace(load_robot('ur5e'), tool_pose=ToolPose('topic'))


@pytest.fixture(scope='module')
def policy(tmp_path_factory):
    path = tmp_path_factory.mktemp('policy') / 'tracked.onnx'
    return load(write_proportional_policy(path, 'reach', OPTIONS))


class Arm:
    """The arm of the task, moved by a deployed policy to which its measured pose is passed."""

    def __init__(self, policy):
        self.task = task = Reach(OPTIONS)
        space = task.workspace
        self.controller = GoalController(
            policy,
            policy.interface,
            task.arm,
            place_workspace(policy.interface, TRACKED),
            'joint_position',
            (space.box_low, space.box_high),
            pose_timeout=0.2,
        )
        self.path, self.now, self.goal = self.controller.path, 0.0, task.reset(seed=1)[0]
        self.path.makes_ahead, self.sees, self.frozen = False, True, None
        self.run(1.0)

    def run(self, seconds):
        for _ in range(round(seconds / PERIOD)):
            stamp = round(self.now * SECOND)
            if self.sees:
                seen = self.task.tracked if self.frozen is None else self.frozen
                self.path.take_pose(self.now, stamp, seen)
            self.path.take_state(self.now, stamp, *self.task.joint_state())
            command = self.path.tick(self.now)
            self.task.advance(None if command is None else command.joint_positions)
            self.now += PERIOD

    def go(self, seed):
        goal = self.task.reset(seed=seed)[0]['desired_goal']
        self.path.restart()
        self.run(1.0)
        self.controller.take_goal(self.now, goal)
        return goal


def test_the_arm_comes_to_goals_in_the_frame_of_the_camera_and_holds_still_there(policy):
    arm = Arm(policy)
    for seed in (1, 2, 3):
        goal = arm.go(seed)
        arm.run(8.0)
        assert arm.controller.reached
        rest = arm.task.tracked
        assert np.linalg.norm(rest - goal) <= AWAY * arm.controller.threshold
        assert arm.controller.distance == np.linalg.norm(rest - goal)
        arm.run(1.0)
        np.testing.assert_allclose(arm.task.tracked, rest, atol=5e-4)


def test_a_lost_pose_interrupts_the_motion_as_lost_joint_states_do(policy):
    arm = Arm(policy)
    arm.go(1)
    arm.run(0.3)
    assert arm.path.monitor.status is Status.RUNNING
    arm.sees = False
    arm.run(0.6)
    assert arm.path.monitor.status is Status.STALE_POSE
    assert arm.path.monitor.has_goal
    assert not arm.path.is_moving
    arm.sees = True
    arm.run(0.5)
    assert arm.path.monitor.status is Status.RUNNING
    arm.sees = False
    arm.run(1.5)
    assert not arm.path.monitor.has_goal
    assert arm.path.monitor.last_drop == 'stale_pose'


def test_a_pose_that_stays_the_same_while_the_arm_moves_drops_the_goal(policy):
    arm = Arm(policy)
    arm.go(1)
    arm.run(0.3)
    arm.frozen, start = arm.task.tracked, arm.path.tool
    arm.run(1.5)
    assert not arm.path.monitor.has_goal
    assert arm.path.monitor.last_drop == 'pose_frozen'
    assert not arm.path.is_moving
    assert np.linalg.norm(arm.path.tool - start) < 0.2


def monitor():
    found = SafetyMonitor(SafetyOptions(), ('a',), (-1.0,), (1.0,), pose_timeout=0.2)
    found.take_state(0.0, 0, np.zeros(1), np.zeros(1))
    return found


def test_no_goal_is_accepted_before_the_first_pose():
    watched = monitor()
    assert watched.judge(0.0) is Status.NO_POSE
    with pytest.raises(GoalError) as caught:
        watched.take_goal(0.0)
    assert caught.value.code == 'no_pose'
    assert watched.take_pose(0.01, SECOND, np.zeros(3))
    watched.take_goal(0.01)
    assert watched.status is Status.RUNNING


def test_the_same_pose_again_is_no_news():
    watched = monitor()
    assert watched.take_pose(0.0, SECOND, np.zeros(3))
    for step in range(1, 40):
        watched.take_state(step * PERIOD, step * SECOND // 100, np.zeros(1), np.zeros(1))
        assert not watched.take_pose(step * PERIOD, SECOND, np.zeros(3))
    assert watched.judge(0.4) is Status.STALE_POSE


@pytest.mark.parametrize('wrong', [(np.nan, 0.0, 0.0), (0.0, 1e6, 0.0)])
def test_an_impossible_pose_is_not_used(wrong):
    watched = monitor()
    watched.take_pose(0.0, SECOND, np.zeros(3))
    watched.take_goal(0.0)
    assert not watched.take_pose(0.01, SECOND + 1, np.array(wrong))
    assert watched.status is Status.BAD_POSE
    assert watched.has_goal


def test_a_jump_of_the_pose_drops_the_goal_until_the_pose_is_good_again():
    watched = monitor()
    watched.take_pose(0.0, SECOND, np.zeros(3))
    watched.take_goal(0.0)
    watched.take_pose(0.01, SECOND + SECOND // 100, np.array((0.5, 0.0, 0.0)))
    assert watched.status is Status.POSE_JUMPED
    assert not watched.has_goal
    assert watched.last_drop == 'pose_jumped'
    for step in range(2, 40):
        watched.take_state(step * PERIOD, step * SECOND // 100, np.zeros(1), np.zeros(1))
        watched.take_pose(step * PERIOD, SECOND + step * SECOND // 100, np.array((0.5, 0.0, 0.0)))
    watched.take_goal(0.4)
    assert watched.status is Status.RUNNING


def test_the_source_of_the_pose_is_part_of_the_contract(policy):
    interface = policy.interface
    check_fit(interface)
    check_robot(interface, TRACKED, 'joint_position')
    with pytest.raises(FitError, match='tool_pose.source: topic is expected.*measured pose'):
        check_robot(interface, load_robot('ur5e'), 'joint_position')
    other = Reach(ReachOptions(robot='ur5e')).interface
    with pytest.raises(FitError, match='trained with a measured pose'):
        check_robot(other, TRACKED, 'joint_position')
    elsewhere = dataclasses.replace(TRACKED, tool_pose=ToolPose('topic', frame='other_camera'))
    with pytest.raises(FitError, match='trained in the frame other_camera'):
        check_robot(interface, elsewhere, 'joint_position')
