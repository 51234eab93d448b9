"""A learning agent's actions on the command path, without ROS."""

from mher_ros.control.action_controller import ActionController
from mher_ros.control.safety_monitor import Status
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np

PERIOD = 0.008
"""Of states and commands [s]."""
STEP = 5
"""Commands of an action."""


class Simulated:
    """A UR5e that is where it was sent, but for the joints that are stuck."""

    def __init__(self, stuck=()):
        robot = load_robot('ur5e')
        arm = ArmModel(robot.simulated())
        task = Reach(ReachOptions(robot='ur5e', joint_speed=2.0), arm=arm)
        self.controller = ActionController(
            task.interface, arm, task.workspace, 'joint_position', command_rate=1.0 / PERIOD
        )
        self.path = self.controller.path
        self.path.makes_ahead = False
        self.positions = np.array([robot.home[name] for name in robot.joints])
        self.free = np.array([name not in stuck for name in robot.joints])
        self.sent, self.now = self.positions.copy(), 0.0
        self.run(33)  # it stands still for a quarter second

    def states(self):
        self.path.take_state(
            self.now, round(self.now * 1e9), self.positions.copy(), np.zeros(len(self.positions))
        )

    def run(self, commands, action=None):
        """Let commands leave; ``action`` is repeated each control period."""
        for index in range(commands):
            self.states()
            if action is not None and index % STEP == 0:
                self.controller.act(self.now, np.asarray(action, np.float32))
            command = self.path.tick(self.now)
            if command is not None:
                self.sent = command.joint_positions
                self.positions = np.where(self.free, self.sent, self.positions)
            self.now += PERIOD


def test_an_action_is_carried_out_until_no_other_follows():
    arm = Simulated()
    start = arm.positions.copy()
    arm.run(25, [0, 0, 0, 0, 0, 1])
    moved = arm.positions - start
    assert moved[5] > 0.02
    assert np.abs(moved[:5]).max() < 1e-3
    arm.run(100)
    rest = arm.positions.copy()
    arm.run(25)
    np.testing.assert_array_equal(arm.positions, rest)


def test_a_joint_that_is_stuck_and_does_not_move_the_tool_is_noticed():
    arm = Simulated(stuck=('wrist_3_joint',))
    for _ in range(200):
        if arm.path.monitor.status is Status.NOT_FOLLOWING:
            break
        arm.run(STEP, [0, 0, 0, 0, 0, 1])
        # When it comes free it is not flung far: 0.5 rad, and what braking from 2 rad/s takes.
        assert np.abs(arm.sent - arm.positions).max() < 1.1
    assert arm.path.monitor.status is Status.NOT_FOLLOWING
    assert 'joints do not follow their commands' in arm.path.monitor.reason
