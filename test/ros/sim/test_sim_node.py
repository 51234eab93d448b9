"""The simulated arm as a node and as a process."""

import signal

import pytest
from rclpy.node import NodeNameNonExistentError

pytestmark = pytest.mark.ros


def test_topics_and_services_are_those_of_the_design(world):
    world.sim_node()
    peer = world.peer()
    node = peer.node

    def complete():
        try:
            sent = dict(node.get_publisher_names_and_types_by_node('sim_node', '/'))
            taken = dict(node.get_subscriber_names_and_types_by_node('sim_node', '/'))
            answered = dict(node.get_service_names_and_types_by_node('sim_node', '/'))
        except NodeNameNonExistentError:
            return False
        return (
            {
                '/joint_states': ['sensor_msgs/msg/JointState'],
                '/tool_pose': ['geometry_msgs/msg/PoseStamped'],
                '/clock': ['rosgraph_msgs/msg/Clock'],
                '/robot_markers': ['visualization_msgs/msg/MarkerArray'],
                '/robot_description': ['std_msgs/msg/String'],
                '/sim_node/status': ['diagnostic_msgs/msg/DiagnosticStatus'],
                '/diagnostics': ['diagnostic_msgs/msg/DiagnosticArray'],
            }.items()
            <= sent.items()
            and {'/action': ['sensor_msgs/msg/Joy']}.items() <= taken.items()
            and {
                '/sim_node/reset': ['std_srvs/srv/Trigger'],
                '/sim_node/pause': ['std_srvs/srv/SetBool'],
            }.items()
            <= answered.items()
        )

    peer.wait_until(complete, 'all topics and services are there')


def test_it_ends_in_good_order_when_terminated(world):
    sim = world.sim_node(stepping='realtime')
    sim.signal(signal.SIGTERM)
    assert sim.end(5.0) == 0


def test_wrong_parameters_end_it_with_a_sentence(world):
    cases = (
        ({'task': 'fetch'}, "task takes one of .*fetch_reach.*; got 'fetch'"),
        ({'viewr': True}, "sim_node has no parameter 'viewr'; it has .*view_rate"),
    )
    for sim, sentence in [(world.node('sim_node', **given), text) for given, text in cases]:
        sim.wait_for(f'^sim_node: {sentence}')
        assert sim.end() == 2
