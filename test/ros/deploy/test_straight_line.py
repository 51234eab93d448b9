"""policy_node without a policy file: a straight line in the workspace of the robot file."""

from geometry_msgs.msg import PointStamped
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.status import DeploymentStatus
import numpy as np
import pytest

pytestmark = pytest.mark.ros

PATIENT = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}


def test_five_joints_go_straight_to_positions_without_a_policy(world):
    robot = load_robot('so101')
    world.sim_node(robot='so101', stepping='realtime')
    node = world.node('policy_node', robot='so101', controller='straight_line', **PATIENT)
    node.wait_for('active: waiting for goals')
    peer = world.peer()
    statuses = peer.follow(DeploymentStatus, 'policy_node')
    goals = peer.talk(PointStamped, 'clicked_point')
    first = statuses.wait_for(lambda status: status.state == 'no_goal', after=-2)
    assert first.controller == 'straight_line'
    # The workspace is the robot's own, of half the usual size.
    low, high = np.array(first.workspace)
    np.testing.assert_allclose((low + high) / 2.0, robot.workspace.origin, atol=1e-9)
    np.testing.assert_allclose(high - low, 0.15, atol=1e-9)

    def send(goal):
        message = PointStamped()
        message.header.frame_id = 'base_link'
        message.point.x, message.point.y, message.point.z = goal
        goals.publish(message)

    for goal in ((0.22, 0.07, 0.08), (0.34, -0.07, 0.2)):
        send(goal)
        statuses.wait_for(lambda status, goal=goal: status.accepted_goal == goal)
        statuses.wait_for(lambda status: status.distance is not None and status.distance < 1e-3)
    send((0.6, 0.0, 0.1))
    statuses.wait_for(lambda status: status.refused == 1)
