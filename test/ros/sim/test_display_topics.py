"""What sim_node shows of its arm, and what it leaves to a robot_state_publisher."""

from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.ros.sim import display_topics
from mher_ros.simulation.kinematic_plant import KinematicPlant
import pytest
from std_msgs.msg import String

pytestmark = pytest.mark.ros


class Frames:
    """Stands in for the links on /tf: the ROS wheels have no tf2_msgs."""

    def __init__(self, node, plant):
        self.published = 0

    def publish(self, stamp):
        self.published += 1


@pytest.fixture(scope='module')
def plant():
    return KinematicPlant(load_robot('ur5e'))


@pytest.mark.parametrize(('choice', 'alone', 'beside'), [
    ('auto', True, False),
    ('always', True, True),
    ('never', False, False),
])  # fmt: skip
def test_links_are_published_unless_another_node_does(
    world, plant, monkeypatch, choice, alone, beside
):
    monkeypatch.setattr(display_topics, 'HAS_TF', True)
    monkeypatch.setattr(display_topics, '_Frames', Frames)
    monkeypatch.setattr(display_topics, 'CHECK', 0.0)
    peer, other = world.peer(), world.peer()
    display = display_topics.DisplayTopics(
        peer.node, plant, 'arm', 'robot_description', publish_frames=choice
    )

    def publishes():
        before = display._frames.published
        display.publish(0)
        return display._frames.published > before

    assert publishes() is alone
    other.node.create_publisher(String, 'robot_description', LATCHED)
    count = peer.node.count_publishers
    peer.wait_until(lambda: count('robot_description') == 2, 'both are there')
    assert publishes() is beside
