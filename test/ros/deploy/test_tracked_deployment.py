"""A policy that sees a measured pose of the tool, on a simulated arm that is not as its model."""

import time

from geometry_msgs.msg import PointStamped, PoseStamped
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.status import ACCEPTED, DeploymentStatus, point_of
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
from mher_ros.simulation.tracker import TrackerOptions
import numpy as np
from proportional_policy import write_proportional_policy
import pytest
from ros_process import PATIENCE

pytestmark = pytest.mark.ros

WRONG = {
    'tracker.camera_turn': '20,0,120',
    'tracker.tool_offset_error': '0,0.06,0.08',
    'tracker.link_error': 0.03,
}
PATIENT = {'safety.state_timeout': 2.0, 'safety.resume_within': 20.0}
"""For a machine that may be busy with other tests."""


class Deployed:
    """A sim_node, a policy_node, and a client that sends goals in the frame of the camera."""

    def __init__(self, world, folder, remap=()):
        path = folder / 'seen.yaml'
        source = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
        path.write_text(
            f'{source}\ntool_pose: {{source: topic, topic: marker, frame: eye, timeout: 2.0}}\n'
        )
        changes = {key.removeprefix('tracker.'): value for key, value in WRONG.items()}
        changes = {
            key: tuple(map(float, value.split(','))) if isinstance(value, str) else value
            for key, value in changes.items()
        }
        options = ReachOptions(50, 0.05, robot=str(path), tracker=TrackerOptions(**changes))
        self.task = Reach(options)
        policy = write_proportional_policy(folder / 'tracked.onnx', 'reach', options)
        self.sim = world.node('sim_node', robot=str(path), stepping='realtime', **WRONG)
        self.node = world.node(
            'policy_node', remap, robot=str(path), policy=str(policy), **PATIENT
        )
        self.peer = world.peer()
        self.statuses = self.peer.follow(DeploymentStatus, 'policy_node')
        self.goals = self.peer.talk(PointStamped, 'clicked_point')
        self.poses = self.peer.listen(PoseStamped, 'marker')
        self.node.wait_for('active: waiting for goals .* frame eye')

    def send(self, goal, frame='eye'):
        message = PointStamped()
        message.header.frame_id = frame
        message.point.x, message.point.y, message.point.z = map(float, goal)
        seen, sent = len(self.statuses.messages), point_of(goal)
        self.goals.publish(message)
        return self.statuses.wait_for(lambda status: status.answered_position == sent, after=seen)


def test_goals_in_the_frame_of_the_camera_are_reached_and_a_lost_pose_stops_the_arm(
    world, tmp_path
):
    deployed = Deployed(world, tmp_path)
    deployed.statuses.wait_for(lambda status: status.state == 'no_goal', after=0)
    for seed in (1, 2):
        goal = deployed.task.reset(seed=seed)[0]['desired_goal']
        answered = deployed.send(goal)
        assert answered.answer == ACCEPTED, answered
        assert answered.frame == 'eye'
        assert answered.box is None
        deployed.statuses.wait_for(lambda status: status.reached)
        position = deployed.poses.messages[-1].pose.position
        assert np.linalg.norm((position.x, position.y, position.z) - goal) < 0.06
    refused = deployed.send((9.0, 9.0, 9.0))
    assert refused.answer == 'outside_workspace'
    deployed.sim.stop()
    deployed.statuses.wait_for(lambda status: status.state in ('stale_pose', 'stale_state'))


def test_a_node_without_the_pose_accepts_no_goal(world, tmp_path):
    deployed = Deployed(world, tmp_path, remap=[('marker', 'elsewhere')])
    deployed.statuses.wait_for(lambda status: status.state == 'no_pose', after=0)
    goal = deployed.task.reset(seed=1)[0]['desired_goal']
    assert deployed.send(goal).answer == 'no_pose'


def test_two_publishers_of_poses_close_to_each_other_stop_the_arm(world, tmp_path):
    deployed = Deployed(world, tmp_path)
    deployed.statuses.wait_for(lambda status: status.state == 'no_goal', after=0)
    goal = deployed.task.reset(seed=1)[0]['desired_goal']
    assert deployed.send(goal).answer == ACCEPTED
    other, end = deployed.peer.talk(PoseStamped, 'marker'), time.monotonic() + PATIENCE
    while deployed.statuses.messages[-1].state != 'two_pose_sources':
        assert time.monotonic() < end, deployed.statuses.messages[-1]
        pose = deployed.poses.messages[-1]
        pose.pose.position.x += 0.03  # less than what a jump is
        other.publish(pose)
        time.sleep(0.02)
    assert deployed.send(goal).answer == 'two_pose_sources'
    assert deployed.statuses.messages[-1].goal is None
