"""The collision shapes of an arm and its obstacles, as RViz receives them from policy_node."""

from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

from arm_models import load_arm, model_text
from deployed_policy import DeployedPolicy, HIGH, LOW
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.collision_markers import CollisionMarkers
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.view.drawings import Colour
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation
from std_msgs.msg import String
import trimesh
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

RVIZ_QOS = QoSProfile(
    depth=5, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
)
FILE = load_robot('fetch').folder / 'fetch.yaml'
TOPIC = 'policy_node/collision_markers'
POST = np.array((0.9, 0.3, 0.6))
LARGER = 0.012
"""By how much a shape may be larger than a mesh: a hull of few vertices is around it [m]."""
SCENE = f"""
collision: {{clearance: 0.01}}
scene:
  post: {{shape: cylinder, position: {POST.tolist()}, radius: 0.05, length: 0.6}}
  wall: {{shape: plane, position: [-2.0, 0.0, 0.0], rpy: [0.0, 1.5708, 0.0]}}
"""


@pytest.fixture(scope='module')
def deployed(shared_world, policy, tmp_path_factory):
    """Return policy_node on Fetch, beside a post and in front of a wall."""
    path = tmp_path_factory.mktemp('robot') / 'fetch.yaml'
    path.write_text(FILE.read_text() + SCENE)
    options = {'robot': str(path), 'safety.progress_timeout': 60.0}
    deployed = DeployedPolicy(shared_world, policy, 'joint_trajectory', **options)
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    yield deployed
    deployed.close()


def matrix(xyz, rotation):
    found = np.eye(4)
    found[:3, 3], found[:3, :3] = xyz, rotation.as_matrix()
    return found


def origin(element):
    place = element.find('origin')
    attributes = {} if place is None else place.attrib
    xyz, rpy = (np.array(attributes.get(key, '0 0 0').split(), float) for key in ('xyz', 'rpy'))
    return matrix(xyz, Rotation.from_euler('xyz', rpy))


def frames_of(robot, positions):
    """Return the pose (4, 4) of each link in the base, by the URDF alone."""
    joints = list(robot.iter('joint'))
    below = {joint.find('child').get('link') for joint in joints}
    (root,) = {link.get('name') for link in robot.iter('link')} - below
    frames, left = {root: np.eye(4)}, joints
    while left:
        for joint in left:
            parent = joint.find('parent').get('link')
            if parent in frames:
                axis = joint.find('axis')
                turn = np.zeros(3) if axis is None else np.array(axis.get('xyz').split(), float)
                turn = Rotation.from_rotvec(turn * positions.get(joint.get('name'), 0.0))
                here = frames[parent] @ origin(joint) @ matrix(np.zeros(3), turn)
                frames[joint.find('child').get('link')] = here
        left = [joint for joint in left if joint.find('child').get('link') not in frames]
    return frames


def cloud_of(shape):
    """Return points on the surface of a collision element, close to each other at its edges."""
    (solid,) = shape.find('geometry')
    if solid.tag == 'mesh':
        path = Path(unquote(urlparse(solid.get('filename')).path))
        mesh = trimesh.load(path, force='mesh')
    elif solid.tag == 'box':
        mesh = trimesh.creation.box(np.array(solid.get('size').split(), float))
    elif solid.tag == 'cylinder':
        mesh = trimesh.creation.cylinder(
            float(solid.get('radius')), float(solid.get('length')), sections=200
        )
    else:
        mesh = trimesh.creation.icosphere(radius=float(solid.get('radius')))
    points = np.asarray(mesh.vertices)
    place = origin(shape)
    return points @ place[:3, :3].T + place[:3, 3]


@pytest.fixture(scope='module')
def links():
    """Return the points of each link with collision shapes, in its frame, and the URDF."""
    robot = ElementTree.fromstring(model_text('fetch'))
    found = {
        link.get('name'): np.vstack([cloud_of(shape) for shape in link.iter('collision')])
        for link in robot.iter('link')
        if link.find('collision') is not None
    }
    return found, robot


def corners(marker):
    """Return the corners of the triangles in the base frame (n, 3)."""
    place, turn = marker.pose.position, marker.pose.orientation
    points = np.array([(point.x, point.y, point.z) for point in marker.points])
    rotation = Rotation.from_quat((turn.x, turn.y, turn.z, turn.w))
    return rotation.apply(points) + (place.x, place.y, place.z)


def shown(array, namespace):
    return [one for one in array.markers if one.ns == namespace and one.action == Marker.ADD]


def check(array):
    """Check what RViz refuses or warns about."""
    keys = [(marker.ns, marker.id) for marker in array.markers]
    assert keys and len(set(keys)) == len(keys)
    for marker in array.markers:
        assert marker.header.frame_id == 'world'
        if marker.type == Marker.TRIANGLE_LIST:
            assert marker.points and len(marker.points) % 3 == 0
            assert (marker.scale.x, marker.scale.y, marker.scale.z) == (1.0, 1.0, 1.0)
            assert 0.0 < marker.color.a < 1.0
            assert not marker.colors and not marker.text


@pytest.mark.parametrize('goal', [LOW, HIGH])
def test_each_shape_is_where_the_joints_have_its_link(deployed, links, goal):
    clouds, robot = links
    deployed.go(goal)
    # At rest: a marker is up to 0.2 s older than the joint state that it is compared with.
    deployed.peer.wait_until(
        lambda: np.linalg.norm(deployed.arm.tool - goal) < 2e-3, 'the arm at its goal'
    )
    arrays = deployed.peer.listen(MarkerArray, TOPIC, RVIZ_QOS)
    arrays.wait_for()
    array = arrays.wait_for()
    check(array)
    arm = deployed.arm
    positions = dict(zip(arm.names, arm.positions.tolist(), strict=True))
    trees = {
        name: cKDTree(clouds[name] @ frame[:3, :3].T + frame[:3, 3])
        for name, frame in frames_of(robot, positions).items()
        if name in clouds
    }
    parts = shown(array, 'arm')
    found = set()
    for marker in parts:
        away = {name: tree.query(corners(marker))[0].max() for name, tree in trees.items()}
        nearest = min(away, key=away.get)
        assert away[nearest] < LARGER
        found.add(nearest)
    moved = {'shoulder_lift_link', 'elbow_flex_link', 'wrist_flex_link', 'gripper_link'}
    assert moved <= found <= trees.keys()


def test_obstacles_of_the_robot_file_are_shown(deployed):
    markers = deployed.peer.listen(MarkerArray, 'policy_node/markers', RVIZ_QOS)
    array = markers.wait_for(lambda array: shown(array, 'scene'))
    post, wall = shown(array, 'scene')
    points = corners(post) - POST
    assert np.abs(points[:, 2]) == pytest.approx(0.3)
    around = np.linalg.norm(points[:, :2], axis=1)
    assert 0.05 <= around.min() and around.max() < 0.054
    assert corners(wall)[:, 0] == pytest.approx(-2.0, abs=1e-4)
    assert np.ptp(corners(wall), axis=0)[1:] == pytest.approx(2.0, abs=1e-3)


def test_a_part_near_an_obstacle_is_highlighted_and_the_gap_is_drawn(deployed):
    obstacles = deployed.peer.talk(MarkerArray, 'obstacles')
    arrays = deployed.peer.listen(MarkerArray, TOPIC, RVIZ_QOS)
    deployed.go(LOW)
    deployed.wait_until_reached()
    before = arrays.wait_for()
    names = {tuple(round(part, 3) for part in colour_of(one)) for one in shown(before, 'arm')}
    assert rounded(Colour.HELD) not in names
    deployed.move()
    place, radius = np.array(deployed.status().goal), 0.05
    ball = Marker(type=Marker.SPHERE, ns='block', id=3)
    ball.header.frame_id = 'world'
    ball.pose.position.x, ball.pose.position.y, ball.pose.position.z = place.tolist()
    ball.scale.x = ball.scale.y = ball.scale.z = 2.0 * radius
    obstacles.publish(MarkerArray(markers=[ball]))

    def gaps(array):
        """Return the lengths of lines that end on the ball [m]."""
        lines = [one for one in shown(array, 'nearest') if one.type == Marker.LINE_LIST]
        points = [(point.x, point.y, point.z) for line in lines for point in line.points]
        ends = np.array(points).reshape(-1, 2, 3)
        from_ball = np.abs(np.linalg.norm(ends - place, axis=2) - radius).min(axis=1)
        return np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)[from_ball < 1e-3]

    array = arrays.wait_for(lambda array: (gaps(array) < 0.05).any())
    colours = {rounded(colour_of(one)) for one in shown(array, 'arm')}
    assert colours & {rounded(Colour.NEAR), rounded(Colour.HELD)}
    assert [one.type for one in shown(array, 'nearest')] == [
        Marker.LINE_LIST,
        Marker.TEXT_VIEW_FACING,
    ]
    obstacles.publish(MarkerArray(markers=[Marker(action=Marker.DELETEALL)]))
    arrays.wait_for(lambda array: not gaps(array).size)
    deployed.drop_goal()
    idle = deployed.wait_for_status(lambda status: not status.moving)
    assert idle.nearest is None


def colour_of(marker):
    return marker.color.r, marker.color.g, marker.color.b, marker.color.a


def rounded(colour):
    return tuple(round(float(part), 3) for part in colour)


def test_nothing_is_computed_without_a_subscriber(world):
    peer = world.peer()
    _, arm = load_arm('fetch', True)
    asked = []
    home = np.array([arm.home[name] for name in arm.state_names])

    def positions():
        asked.append(peer.node.count_subscribers(markers_topic))
        return home

    markers_topic = f'{peer.node.get_name()}/collision_markers'
    markers = CollisionMarkers(peer.node, arm, positions)
    ticks = []
    peer.node.create_timer(0.05, lambda: ticks.append(0))
    peer.wait_until(lambda: len(ticks) > 40, 'some periods')
    assert not asked
    arrays = peer.listen(MarkerArray, markers_topic, RVIZ_QOS)
    assert shown(arrays.wait_for(), 'arm')
    assert asked and min(asked) > 0
    markers.close()


def test_an_arm_without_collision_avoidance_has_no_such_topic(deploy, tmp_path):
    path = tmp_path / 'fetch.yaml'
    path.write_text(FILE.read_text() + 'collision: {enabled: false}\n')
    deployed = deploy('joint_trajectory', robot=str(path))
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    assert deployed.peer.node.count_publishers(TOPIC) == 0
    markers = deployed.peer.listen(MarkerArray, 'policy_node/markers', RVIZ_QOS)
    assert not shown(markers.wait_for(), 'scene')
    deployed.move()
    assert deployed.status().nearest is None


def test_an_arm_whose_model_has_no_collision_shapes_has_no_such_topic(world, policy, tmp_path):
    path = tmp_path / 'fetch.yaml'
    path.write_text(FILE.read_text() + 'collision: {clearance: 0.01}\n')
    deployed = DeployedPolicy(
        world, policy, 'joint_trajectory', tells_model=False, robot=str(path)
    )
    try:
        robot = ElementTree.fromstring(model_text('fetch'))
        for link in robot.iter('link'):
            for shape in link.findall('collision'):
                link.remove(shape)
        description = deployed.peer.node.create_publisher(String, 'robot_description', LATCHED)
        description.publish(String(data=ElementTree.tostring(robot, encoding='unicode')))
        deployed.wait_until_active()
        deployed.wait_for_status(lambda status: status.state == 'no_goal')
        assert deployed.peer.node.count_publishers(TOPIC) == 0
        deployed.go()
    finally:
        deployed.close()
