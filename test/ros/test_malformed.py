"""Messages that are none: every node goes on, and says how many there were."""

import itertools

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped, TwistStamped
from mher_ros.control.robot import Topics
from mher_ros.ros.inbox import LATCHED
import pytest
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import InteractiveMarkerFeedback, MarkerArray

pytestmark = pytest.mark.ros

STATE = JointState(name=[f'a_joint_{i}' for i in range(7)], position=[0.0] * 7)


def publish_malformed(peer, node, kind, topic, message=None, qos=10):
    """Publish what is no message of a topic until ``node`` has counted one more of these."""
    raw = serialize_message(message or kind())
    truncated = raw[: min(100, len(raw) - 5)]
    absurd = raw[:4] + b'\xff' * (len(raw) - 4)  # as lengths
    before = int(peer.figures(node)['malformed messages'])
    publisher = peer.talk(kind, topic, qos)

    def is_counted(figures):
        for malformed in (truncated, absurd, raw[:3]):
            publisher.publish(malformed)
        return int(figures['malformed messages']) > before

    peer.figures(node, is_counted)
    return publisher


def test_policy_node_goes_on_and_still_moves_its_arm(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    for kind, topic in (
        (PoseStamped, 'goal_pose'),
        (PointStamped, 'clicked_point'),
        (InteractiveMarkerFeedback, 'goal_marker/feedback'),
    ):
        publish_malformed(deployed.peer, 'policy_node', kind, topic)
    deployed.move()
    publish_malformed(deployed.peer, 'policy_node', JointState, 'joint_states', STATE)
    deployed.node.wait_for('malformed message on')
    deployed.peer.figures('policy_node', lambda told: told['level'] == DiagnosticStatus.OK)
    deployed.wait_until_reached()


@pytest.mark.parametrize('stepping', ['realtime', 'lockstep'])
def test_sim_node_goes_on_and_still_takes_joint_commands(world, stepping):
    world.sim_node('fetch_reach', stepping, interface='joint')
    peer = world.peer()
    publish_malformed(peer, 'sim_node', JointTrajectory, Topics().joint_trajectory)
    if stepping == 'realtime':
        publish_malformed(peer, 'sim_node', Float64MultiArray, Topics().joint_position)
    peer.listen(JointState, 'joint_states').wait_for()


def test_sim_node_goes_on_and_still_follows_twists(world):
    world.sim_node('point2d_large', 'realtime')
    peer = world.peer()
    twists = publish_malformed(peer, 'sim_node', TwistStamped, 'twist_command')
    states = peer.listen(JointState, 'joint_states')
    start = states.wait_for().position[0]
    twist = TwistStamped()
    twist.twist.linear.x = 1.0

    def has_moved(state):
        twists.publish(twist)
        return abs(state.position[0] - start) > 0.01

    states.wait_for(has_moved)


def test_view_node_goes_on(world):
    world.node('view_node', port=0).wait_for('open http')
    peer = world.peer()
    for kind, topic, qos in (
        (JointState, 'joint_states', 10),
        (MarkerArray, 'policy_node/markers', 10),
        (Float64, 'policy_node/distance', 10),
        (String, 'robot_description', LATCHED),
    ):
        publish_malformed(peer, 'view_node', kind, topic, qos=qos)


def test_train_node_goes_on(world, tmp_path):
    world.sim_node()
    world.train_node(tmp_path / 'run', changes={'schedule.steps': 100_000})
    publish_malformed(world.peer(), 'train_node', JointState, 'joint_states', STATE)


def test_a_clock_before_1970_ends_nobody(world):
    node = world.node('view_node', port=0, use_sim_time=True)
    node.wait_for('open http')
    peer = world.peer()
    clock = peer.talk(Clock, '/clock')
    diagnostics = peer.listen(DiagnosticArray, '/diagnostics')

    def show(seconds):
        # Again and again: who listens to a clock may miss a message.
        message = Clock()
        message.clock.sec = seconds
        clock.publish(message)

    def is_warned():
        show(-5)
        return any('malformed message on /clock' in line for line in node.lines)

    peer.wait_until(is_warned, 'a warning')
    seconds, before = itertools.count(5), len(diagnostics.messages)

    def is_new():  # its diagnostics are published in ROS time
        show(next(seconds))
        return len(diagnostics.messages) > before + 1

    peer.wait_until(is_new, 'diagnostics')
