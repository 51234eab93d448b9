"""Messages that are none: every node goes on, and says how many there were."""

import itertools

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped
from mher_ros.robots.robot import Topics
from mher_ros.ros.common.polled_topic import LATCHED, warn_of_message
import pytest
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, Joy
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import InteractiveMarkerFeedback, MarkerArray

pytestmark = pytest.mark.ros

STATE = JointState(name=[f'a_joint_{i}' for i in range(7)], position=[0.0] * 7)


def publish_malformed(peer, process, name, *topics):
    """
    Publish malformed messages on topics until node ``name`` has warned of each, and counted.

    ``topics``: (type, name), maybe followed by a message to spoil and a QoS.
    """
    before = int(peer.figures(name)['malformed messages'])
    publishers = {}
    for kind, topic, *rest in topics:
        message, qos = rest or (kind(), 10)
        raw = serialize_message(message)
        truncated = raw[: min(100, len(raw) - 5)]
        absurd = raw[:4] + b'\xff' * (len(raw) - 4)  # as lengths
        publishers[topic] = peer.talk(kind, topic, qos), (truncated, absurd, raw[:3])

    def are_warned_of():
        for publisher, messages in publishers.values():
            for malformed in messages:
                publisher.publish(malformed)
        text = '\n'.join(process.lines)
        return all(f'malformed message on /{topic}:' in text for topic in publishers)

    peer.wait_until(are_warned_of, f'warnings of {list(publishers)}')
    peer.figures(name, lambda told: int(told['malformed messages']) >= before + len(publishers))
    return [publisher for publisher, _ in publishers.values()]


def test_policy_node_goes_on_and_still_moves_its_arm(deploy):
    deployed = deploy()
    deployed.wait_until_active()
    publish_malformed(
        deployed.peer,
        deployed.node,
        'policy_node',
        (PoseStamped, 'goal_pose'),
        (PointStamped, 'clicked_point'),
        (InteractiveMarkerFeedback, 'goal_marker/feedback'),
    )
    deployed.move()
    publish_malformed(
        deployed.peer, deployed.node, 'policy_node', (JointState, 'joint_states', STATE, 10)
    )
    deployed.peer.figures('policy_node', lambda told: told['level'] == DiagnosticStatus.OK)
    deployed.wait_until_reached()


@pytest.mark.parametrize('stepping', ['realtime', 'lockstep'])
def test_sim_node_goes_on_and_still_takes_joint_commands(world, stepping):
    node = world.sim_node(stepping=stepping, robot='fetch')
    peer = world.peer()
    topics = [(JointTrajectory, Topics().commands['joint_trajectory'])]
    if stepping == 'realtime':
        topics.append((Float64MultiArray, Topics().commands['joint_position']))
    publish_malformed(peer, node, 'sim_node', *topics)
    peer.listen(JointState, 'joint_states').wait_for()


def test_sim_node_goes_on_and_still_takes_actions(world):
    node = world.sim_node('point2d_large', 'realtime')
    peer = world.peer()
    (actions,) = publish_malformed(peer, node, 'sim_node', (Joy, 'action'))
    states = peer.listen(JointState, 'joint_states')
    start = states.wait_for().position[0]

    def has_moved(state):
        actions.publish(Joy(axes=[0.1, 0.0]))
        return abs(state.position[0] - start) > 0.01

    states.wait_for(has_moved)


def test_view_node_goes_on(world):
    node = world.node('view_node', port=0)
    node.wait_for('open http')
    publish_malformed(
        world.peer(),
        node,
        'view_node',
        (JointState, 'joint_states'),
        (MarkerArray, 'policy_node/markers'),
        (DiagnosticStatus, 'policy_node/status', DiagnosticStatus(), LATCHED),
        (DiagnosticStatus, 'train_node/status', DiagnosticStatus(), LATCHED),
        (String, 'robot_description', String(), LATCHED),
    )


def test_train_node_goes_on(world, tmp_path):
    world.sim_node()
    node = world.train_node(tmp_path / 'run', changes={'schedule.steps': 100_000})
    publish_malformed(world.peer(), node, 'train_node', (JointState, 'joint_states', STATE, 10))


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

    def is_new():
        show(next(seconds))
        return len(diagnostics.messages) > before + 1

    peer.wait_until(is_new, 'diagnostics')


def test_a_topic_that_is_warned_of_silences_no_other(world, capfd):
    node = world.peer().node
    for _ in range(2):
        for topic in ('/one', '/other'):
            warn_of_message(node, topic, f'refused on {topic}')
    told = capfd.readouterr().err
    assert [told.count(f'refused on {topic}') for topic in ('/one', '/other')] == [1, 1]
