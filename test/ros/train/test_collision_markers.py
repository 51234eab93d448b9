"""The collision shapes and obstacles that train_node publishes while it learns on a robot."""

from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.status import TrainingStatus
import numpy as np
import pytest
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

PLACE = (0.5, -0.6, 0.3)
SCENE = f"""
collision: {{clearance: 0.01}}
scene: {{post: {{shape: sphere, position: {list(PLACE)}, radius: 0.05}}}}
"""


@pytest.mark.parametrize('stepping', ['lockstep', 'realtime'])
def test_they_are_shown_while_the_arm_moves(world, tmp_path, stepping):
    path = tmp_path / 'ur5e.yaml'
    path.write_text((load_robot('ur5e').folder / 'ur5e.yaml').read_text() + SCENE)
    world.node('sim_node', robot=str(path), stepping=stepping).wait_for('ur5e: .* joints')
    parameters = {'robot': str(path), 'stepping': stepping}
    steps = {'schedule.steps': '100000'}
    world.train_node(tmp_path / 'run', 'reach', steps, **parameters)
    peer = world.peer()
    statuses = peer.follow(TrainingStatus, 'train_node')
    statuses.wait_for(lambda status: status.steps > 0, after=0)
    markers = peer.listen(MarkerArray, 'train_node/markers')
    array = markers.wait_for(lambda array: any(one.ns == 'scene' for one in array.markers))
    (post,) = (one for one in array.markers if one.ns == 'scene')
    points = np.array([(point.x, point.y, point.z) for point in post.points])
    assert np.linalg.norm(points - PLACE, axis=1) == pytest.approx(0.05)
    shapes = peer.listen(MarkerArray, 'train_node/collision_markers')
    first = shapes.wait_for(lambda array: array.markers)
    assert {one.type for one in first.markers if one.ns == 'arm'} == {Marker.TRIANGLE_LIST}
    places = poses_of(first)
    shapes.wait_for(lambda array: np.abs(poses_of(array) - places).max() > 1e-3)


def poses_of(array):
    return np.array(
        [
            (one.pose.position.x, one.pose.position.y, one.pose.position.z)
            for one in array.markers
            if one.ns == 'arm'
        ]
    )
