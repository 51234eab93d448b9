"""Joint states that are unusual but right move the arm as others do."""

import signal

from deployed_policy import stops
import numpy as np
import pytest
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.ros

SPEED = 0.25
"""Default cap on the tool's [m/s]."""


def test_where_states_are_rare_commands_go_on_between_them(deploy):
    deployed = deploy('joint_trajectory', command_rate=100.0)
    arm = deployed.arm
    arm.rate = 20.0
    deployed.wait_until_active()
    arm.wait_for_states(5)
    states = arm.published
    deployed.go()
    deployed.wait_until_reached()
    points = [told.points[0] for told in arm.commands.messages]
    assert len(points) > 2 * (arm.published - states)
    assert {point.time_from_start.nanosec for point in points} == {10_000_000}
    joints = np.array([point.positions for point in points])
    still = np.zeros(len(arm.positions))
    tools = np.array([arm.model.tool(positions, still)[0] for positions in joints])
    speeds = np.linalg.norm(np.diff(tools, axis=0), axis=1) / 0.01
    assert 0.1 < speeds.max() <= SPEED + 1e-6
    assert (np.abs(np.diff(joints, axis=0)) <= arm.model.velocity_limits * 0.01 + 1e-9).all()


def test_states_of_a_gripper_right_after_the_arms_do_not_disturb(deploy):
    deployed = deploy()
    arm = deployed.arm
    deployed.wait_until_active()
    arm.wait_for_states(5)

    def share_of_states_that_are_answered():
        deployed.go()
        deployed.commands.wait_for()
        commands, states = len(deployed.commands.messages), arm.published
        arm.wait_for_states(60)
        return (len(deployed.commands.messages) - commands) / (arm.published - states)

    alone = share_of_states_that_are_answered()
    finger = JointState(name=['finger'], position=[0.02], velocity=[0.0])
    arm.company = (finger,) * 3
    assert share_of_states_that_are_answered() > 0.5 * alone
    assert not any(stops(deployed.commands.messages))
    deployed.wait_until_reached()
    assert not any('finger' in line for line in deployed.node.lines)


def test_stamps_from_before_1970_are_as_good_as_others(deploy):
    deployed = deploy()

    def age(message):
        message.header.stamp.sec -= 2_000_000_000

    deployed.arm.spoil = age
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.go()
    deployed.wait_until_reached()
    assert deployed.node.is_running()


def test_stamps_from_before_1970_do_not_end_the_node(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()

    def age(message):
        message.header.stamp.sec = -1

    def publish_old_stamps():
        # More than one: a busy node reads only the newest of several states.
        deployed.arm.spoil = age
        deployed.node.wait_for('clock of the joint states was set back')
        deployed.arm.spoil = None

    deployed.expect_one_stop(publish_old_stamps)
    deployed.move()


def test_a_terminal_that_is_closed_stops_the_arm(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    deployed.arm.wait_for_states(5)
    deployed.move()
    deployed.commands.messages.clear()
    deployed.node.signal(signal.SIGHUP)
    assert deployed.node.end() == 0
    deployed.wait_for_stop()  # it may have come, and not have been read yet
    assert stops(deployed.commands.messages).count(True) == 1
    assert stops(deployed.commands.messages)[-1]
