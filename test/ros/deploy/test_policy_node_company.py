"""A second commander of the arm, and a second source of its joint states, stop the arm."""

import sys
import time

from deployed_policy import DeployedPolicy
from geometry_msgs.msg import TwistStamped
import pytest
import rclpy
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.ros

QUIET = 0.4
"""Time without a command after which the arm is taken to have come to rest [s]."""


@pytest.fixture(scope='module')
def shared(shared_world, policy):
    """Return a node with its arm that tests take turns with."""
    deployed = DeployedPolicy(shared_world, policy)
    deployed.world = shared_world
    deployed.wait_until_active()
    yield deployed
    deployed.close()


@pytest.fixture
def deployed(shared):
    """Return the node with an arm that is on its way to a goal."""
    shared.arm.wait_for_states(5)
    shared.move()
    return shared


@pytest.fixture
def other(shared):
    """Return a peer of its own process' context, with a node that ends with the test."""
    return shared.world.peer()


def expect_rest_until_the_end(deployed, reason, end):
    """Expect that the arm rests and no goal is taken, and that the next is after the ``end``."""
    deployed.node.wait_for(reason)
    commands = deployed.commands
    deployed.peer.wait_until(lambda: time.monotonic() - commands.times[-1] > QUIET, 'it rests')
    deployed.expect_no_goal_is_taken()
    end()
    deployed.node.wait_for('there is no goal')
    deployed.move()


def test_a_second_publisher_on_the_command_topic(deployed, other):
    publisher = other.node.create_publisher(TwistStamped, deployed.arm.topic, 10)
    name = other.node.get_name()
    expect_rest_until_the_end(
        deployed,
        f'another node can command the arm: .*{name}',
        lambda: other.node.destroy_publisher(publisher),
    )


def test_two_policy_nodes_on_one_arm_stop_each_other(deployed, policy):
    named = ('-r', '__node:=second_node', '-p', f'policy:={policy}', '-p', 'output:=twist')
    second = deployed.world.start(
        sys.executable, '-m', 'mher_ros.ros', 'policy_node', '--ros-args', *named
    )
    second.wait_for('another node can command the arm: .*policy_node')

    def end():
        assert second.stop() == 0

    expect_rest_until_the_end(deployed, 'another node can command the arm: .*second_node', end)


def test_a_second_node_of_the_same_name(deployed, other):
    node = rclpy.create_node('policy_node', context=other.context)
    expect_rest_until_the_end(
        deployed, 'another node can command the arm: .*policy_node', node.destroy_node
    )


def test_a_second_source_of_joint_states(deployed, other):
    arm = deployed.arm
    publisher = other.node.create_publisher(JointState, 'joint_states', 10)
    elsewhere = [float(arm.robot.home[name]) + 0.5 for name in arm.names]

    def tell():
        message = JointState(name=[*arm.names], position=elsewhere, velocity=[0.0] * 7)
        message.header.stamp = other.node.get_clock().now().to_msg()
        publisher.publish(message)

    timer = other.node.create_timer(0.01, tell)

    def end():
        timer.cancel()
        other.node.destroy_publisher(publisher)

    expect_rest_until_the_end(deployed, 'joint states come from more than one publisher', end)


def test_a_driver_that_is_started_again_is_no_second_source(deployed):
    arm, node = deployed.arm, deployed.peer.node
    line = len(deployed.node.lines)
    before, arm._states = arm._states, node.create_publisher(JointState, 'joint_states', 10)
    node.destroy_publisher(before)
    deployed.peer.wait_until(lambda: node.count_publishers('joint_states') == 1, 'one is gone')
    arm.wait_for_states(100)
    assert not any('more than one' in text for text in deployed.node.lines[line:])
    deployed.move()
