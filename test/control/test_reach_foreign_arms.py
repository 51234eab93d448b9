"""Arms that do not come along keep every limit on the way to their goals, too."""

from command_judge import CommandJudge
from foreign_arms import KINOVA_PLACED, UR10_HOME, write_arm
from led_arm import LedArm, TICK
from mher_ros.control.safety import Status
import numpy as np
import pytest

MORE = {
    'kinova': KINOVA_PLACED,
    'ur10': UR10_HOME + 'workspace: {origin: [0.6, 0.15, 0.5]}\n',
}


@pytest.mark.parametrize('name', MORE)
@pytest.mark.parametrize('output', ['joint_trajectory', 'joint_velocity'])
def test_joints_of_any_arm_keep_their_accelerations(name, output, tmp_path):
    arm = LedArm(output, str(write_arm(tmp_path, name, MORE[name])), 'fetch_reach')
    judge = CommandJudge(arm.robot, None, output, arm.reach.limits, arm.model)
    random, space = np.random.default_rng(7), arm.workspace
    arm.tell_state()
    reached = 0
    for _ in range(12):
        arm.reach.take_goal(arm.now, random.uniform(space.low, space.high))
        for _ in range(int(random.integers(60, 400))):
            arm.pass_time(TICK)
            arm.tell_state()
            command = arm.answer()
            if command is not None:
                judge.take(arm.now, command, arm.positions)
        assert arm.guard.status is Status.RUNNING
        reached += arm.reach.reached
    assert reached >= 6  # the others were replaced on the way
    assert judge.worst['speed'] > 0.15
    assert judge.worst['joint change'] > 0.1
