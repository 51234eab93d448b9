"""Arms that do not come along keep every limit on the way to their goals, too."""

from command_judge import CommandJudge
from command_path_arm import CommandPathArm, TICK
from foreign_arms import KINOVA_PLACED, UR10_HOME, write_arm
from mher_ros.control.safety_monitor import Status
import numpy as np
import pytest

MORE = {
    'kinova': KINOVA_PLACED,
    'ur10': UR10_HOME + 'workspace: {origin: [0.6, 0.15, 0.5]}\n',
}


@pytest.mark.parametrize('name', MORE)
@pytest.mark.parametrize('output', ['joint_trajectory', 'joint_velocity'])
def test_joints_of_any_arm_keep_their_accelerations(name, output, tmp_path):
    arm = CommandPathArm(output, str(write_arm(tmp_path, name, MORE[name])), 'fetch_reach')
    judge = CommandJudge(arm.robot, None, output, arm.path.limits, arm.model)
    random, space = np.random.default_rng(7), arm.workspace
    arm.send_state()
    reached = 0
    for _ in range(12):
        arm.controller.take_goal(arm.now, random.uniform(space.low, space.high))
        for _ in range(int(random.integers(60, 400))):
            arm.pass_time(TICK)
            arm.send_state()
            command = arm.answer()
            if command is not None:
                judge.take(arm.now, command, arm.positions)
        assert arm.monitor.status is Status.RUNNING
        reached += arm.controller.reached
    assert reached >= 6  # the others were replaced on the way
    assert judge.worst['speed'] > 0.6
    assert judge.worst['joint change'] > 0.1


STRETCHED = UR10_HOME + 'workspace: {origin: [1.3, 0.3, 0.3]}\n'
"""A workspace of which a UR10 reaches the near part alone."""


@pytest.mark.parametrize('output', ['joint_trajectory', 'joint_position', 'joint_velocity'])
def test_a_stretched_arm_keeps_every_limit(output, tmp_path):
    """There a small motion of the tool takes a large one of the joints, or is not possible."""
    arm = CommandPathArm(output, str(write_arm(tmp_path, 'ur10', STRETCHED)), 'fetch_reach')
    judge = CommandJudge(arm.robot, None, output, arm.path.limits, arm.model)
    near, far = arm.workspace.low, arm.workspace.high
    elbow, elbows = arm.model.state_names.index('elbow_joint'), []
    arm.send_state()
    for goal in (far, near, (far[0], near[1], far[2]), near, (far[0], far[1], near[2])):
        arm.controller.take_goal(arm.now, goal)
        for _ in range(400):
            arm.pass_time(TICK)
            arm.send_state()
            command = arm.answer()
            if command is not None:
                judge.take(arm.now, command, arm.positions)
            if arm.monitor.status is Status.NO_PROGRESS and not arm.path.is_moving:
                break
        elbows.append(abs(arm.positions[elbow]))
    assert max(elbows[0::2]) < 0.2  # nearly straight [rad]
    assert min(elbows[1::2]) > 0.8
    assert judge.worst['speed'] > 0.6
