"""Obstacles and the collision shapes of the arm on the page of view_node."""

from browser import wait_for
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.status import DeploymentStatus
from mher_ros.view.drawings import Colour
import numpy as np
import pytest
from viewed import Viewed
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

PATIENCE = 120.0
LABEL = 'Collision shapes'
SHAPES, MARKERS = 'policy_node/collision_markers', 'policy_node/markers'
SCENE = """
collision: {clearance: 0.01}
scene:
  post: {shape: cylinder, position: [0.75, 0.25, 0.9], radius: 0.08, length: 0.7}
"""


class Sender:
    """Publishes markers as policy_node does, if there is a subscriber."""

    def __init__(self, peer, topic, *markers):
        self._array = MarkerArray(markers=[*markers])
        self.publisher = peer.node.create_publisher(MarkerArray, topic, 1)
        peer.node.create_timer(0.1, self._publish)

    @property
    def subscribers(self):
        return self.publisher.get_subscription_count()

    def _publish(self):
        if self.subscribers:
            self.publisher.publish(self._array)


def marker(namespace, kind, number=0):
    found = Marker(ns=namespace, id=number, type=kind)
    found.header.frame_id = 'world'
    found.scale.x, found.scale.y, found.scale.z = 0.1, 0.2, 0.3
    found.color.r = found.color.a = 0.5
    found.pose.position.x = 0.5
    return found


def triangle():
    found = marker('arm', Marker.TRIANGLE_LIST, 3)
    for x, y in ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)):
        found.points.append(type(found.pose.position)(x=x, y=y))
    return found


def test_obstacles_are_shown_and_shapes_only_while_somebody_wants_them(world):
    peer = world.peer()
    obstacles = [
        marker('obstacles', kind, number)
        for number, kind in enumerate((Marker.CUBE, Marker.CYLINDER, Marker.SPHERE))
    ]
    markers = Sender(peer, MARKERS, *obstacles)
    shapes = Sender(peer, SHAPES, triangle())
    with Viewed(world).reader() as reader:
        reader.wait_for(
            lambda: {f'policy_obstacles_{number}' for number in range(3)} <= set(reader.drawings),
            what='the obstacles',
        )
        peer.wait_until(lambda: markers.subscribers, 'a subscriber of the markers')
        assert shapes.subscribers == 0
        reader.set(LABEL, value=True)
        reader.wait_for(lambda: 'shapes_policy_arm_3' in reader.drawings, what='the shape')
        assert shapes.subscribers == 1
        reader.set(LABEL, value=False)
        reader.wait_for(lambda: 'shapes_policy_arm_3' not in reader.drawings, what='it to go')
        peer.wait_until(lambda: not shapes.subscribers, 'the end of the subscription')
        assert 'policy_obstacles_0' in reader.drawings


@pytest.mark.slow
def test_the_mouse_shows_the_shapes_of_an_arm_in_a_browser(world, browser, policy, tmp_path):
    path = tmp_path / 'fetch.yaml'
    path.write_text((load_robot('fetch').folder / 'fetch.yaml').read_text() + SCENE)
    peer = world.peer()
    world.node('sim_node', robot=str(path), output='joint_trajectory')
    world.node('policy_node', robot=str(path), policy=str(policy), output='joint_trajectory')
    statuses = peer.follow(DeploymentStatus, 'policy_node')
    statuses.wait_for(lambda status: status.state == 'no_goal', after=0)
    viewed = Viewed(world, view_rate=5.0)
    with browser.open(viewed.address) as window:
        wait_for(lambda: 'there is no goal' in window.text(), PATIENCE, 'policy_node')
        wait_for(lambda: brown(window) > 200, PATIENCE, 'the post')
        before = blue(window)
        assert peer.node.count_subscribers(SHAPES) == 0
        window.tick(LABEL)
        wait_for(lambda: blue(window) > before + 2000, PATIENCE, 'the shapes')
        assert peer.node.count_subscribers(SHAPES) == 1
        window.tick(LABEL)
        wait_for(lambda: blue(window) < before + 200, PATIENCE, 'the shapes to go')
        assert peer.node.count_subscribers(SHAPES) == 0


def blue(window):
    """Return the number of pixels with about the hue of the shapes."""
    red, green, blue = scene(window)
    return int(((blue > red + 25) & (blue > green + 8)).sum())


def brown(window):
    """Return the number of pixels with about the hue of obstacles."""
    red, green, blue = scene(window)
    assert Colour.OBSTACLE[0] > Colour.OBSTACLE[1] > Colour.OBSTACLE[2]
    return int(((red > green + 12) & (green > blue + 5)).sum())


def scene(window):
    """Return the colours beside the panel."""
    picture = window.picture()
    return np.moveaxis(picture[:, : picture.shape[1] * 2 // 3], -1, 0)
