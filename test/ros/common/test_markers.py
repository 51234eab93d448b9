"""What RViz is sent, received over DDS with RViz's own quality of service."""

from pathlib import Path
import subprocess
import sys
import threading
import time
from urllib.parse import unquote, urlparse

from builtin_interfaces.msg import Time
from mher_ros.ros.common.markers import (
    DeployMarkers,
    deployment_markers,
    Motion,
    RobotMarkers,
    training_markers,
)
from mher_ros.ros.common.status import DeploymentStatus
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.shapes import visible_shapes
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from visualization_msgs.msg import Marker, MarkerArray

DOMAIN = 71
PATIENCE = 60.0
RVIZ_QOS = QoSProfile(
    depth=5, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.VOLATILE
)
TASKS = ('fetch_reach', 'sawyer_reach', 'reacher', 'point2d_four_room')

SENDER = """
import sys, threading
from mher_ros.ros.common.markers import RobotMarkers, training_markers
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.shapes import visible_shapes
from mher_ros.tasks import make
import rclpy
from visualization_msgs.msg import MarkerArray

rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node('sender')
robot = node.create_publisher(MarkerArray, 'robot_markers', 5)
training = node.create_publisher(MarkerArray, 'train_node/markers', 5)
plant, task = JointPlant('fetch_reach'), make('fetch_reach')
task.reset(seed=0)
markers = RobotMarkers(visible_shapes(plant.model, plant.joint_names), plant.frame)
done, trail = threading.Event(), []
threading.Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
while not done.wait(0.02):
    plant.advance(None)
    trail.append(plant.tool_pose()[0])
    robot.publish(markers.at(plant.data, node.get_clock().now().to_msg()))
    training.publish(training_markers(task.interface, task.goal, trail))
"""


@pytest.fixture(autouse=True, scope='module')
def local():
    """Keep messages on this machine, here and in the sender."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        yield


def robot_of(task):
    """Return (model, shapes, frame) of a task."""
    env = make(task)
    env.reset(seed=0)
    model, *_ = env.scene()
    return model, visible_shapes(model, env.joint_names), env.interface.frame


def data_of(model, seed=0):
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(size=model.nv), 0.3)
    mujoco.mj_kinematics(model, data)
    return data


def vector(part):
    return np.array([part.x, part.y, part.z])


def assert_rviz_takes(array, frame):
    """Check what RViz refuses or warns about."""
    keys = [(marker.ns, marker.id) for marker in array.markers]
    assert keys and len(set(keys)) == len(keys)
    for marker in array.markers:
        assert marker.header.frame_id == frame
        assert (marker.lifetime.sec, marker.lifetime.nanosec) == (0, 0)
        turn = marker.pose.orientation
        length = np.linalg.norm((turn.w, turn.x, turn.y, turn.z))
        assert length == pytest.approx(1.0, abs=1e-6)
        assert np.isfinite(vector(marker.pose.position)).all()
        if marker.action == Marker.DELETE:
            continue
        assert marker.action == Marker.ADD
        assert 0.0 < marker.color.a <= 1.0
        if marker.type in (Marker.LINE_LIST, Marker.LINE_STRIP):
            assert marker.scale.x > 0.0 and len(marker.points) > 1
            assert marker.type != Marker.LINE_LIST or len(marker.points) % 2 == 0
        elif marker.type == Marker.POINTS:
            assert marker.scale.x > 0.0 and marker.scale.y > 0.0 and marker.points
        else:
            assert (vector(marker.scale) > 0.0).all()
        if marker.type == Marker.MESH_RESOURCE:
            address = urlparse(marker.mesh_resource)
            assert address.scheme == 'file' and Path(unquote(address.path)).is_file()
            assert not marker.mesh_use_embedded_materials


@pytest.mark.ros
def test_rviz_receives_arm_and_training_from_another_process():
    sender = subprocess.Popen([sys.executable, '-c', SENDER, str(DOMAIN)], stdin=subprocess.PIPE)
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=DOMAIN)
    node = rclpy.create_node('rviz', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    received = {}
    try:
        for topic in ('robot_markers', 'train_node/markers'):
            node.create_subscription(
                MarkerArray,
                topic,
                lambda message, topic=topic: received.setdefault(topic, []).append(message),
                RVIZ_QOS,
            )
        deadline = time.monotonic() + PATIENCE
        while len(received) < 2 or min(map(len, received.values())) < 5:
            assert time.monotonic() < deadline and sender.poll() is None, sorted(received)
            executor.spin_once(timeout_sec=0.1)
        # Read while the sender lives: where there is no cache its mesh files go with it.
        for messages in received.values():
            for message in messages:
                assert_rviz_takes(message, 'world')
    finally:
        sender.stdin.close()
        sender.wait(timeout=PATIENCE)
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    robot = received['robot_markers'][-1].markers
    assert {marker.ns for marker in robot} == {'robot'}
    assert sum(marker.type == Marker.MESH_RESOURCE for marker in robot) > 10
    assert robot[0].header.stamp.sec > 0
    training = received['train_node/markers'][-1].markers
    assert {marker.ns for marker in training} == {'goal', 'trail', 'virtual_goals', 'workspace'}


@pytest.mark.parametrize('task', TASKS)
def test_markers_are_the_shapes_where_they_are(task):
    model, shapes, frame = robot_of(task)
    markers = RobotMarkers(shapes, frame)
    for seed in (0, 1):
        data = data_of(model, seed)
        array = markers.at(data)
        assert_rviz_takes(array, frame)
        positions, orientations = shapes.poses(data)
        for index, (shape, marker) in enumerate(zip(shapes, array.markers, strict=True)):
            turn = marker.pose.orientation
            np.testing.assert_array_equal(vector(marker.pose.position), positions[index])
            np.testing.assert_array_equal((turn.w, turn.x, turn.y, turn.z), orientations[index])
            np.testing.assert_array_equal(vector(marker.scale), shape.size)
            colour = marker.color
            np.testing.assert_allclose(
                (colour.r, colour.g, colour.b, colour.a), shape.rgba, atol=1e-6
            )
            assert (marker.mesh_resource == '') == (shape.mesh is None)


def test_an_arms_markers_follow_its_joints_and_carry_the_stamp():
    plant = JointPlant('fetch_reach')
    shapes = visible_shapes(plant.model, plant.joint_names)
    markers = RobotMarkers(shapes, plant.frame)
    hand = [shape.name for shape in shapes].index('gripper_link')

    def place():
        return vector(markers.at(plant.data, Time(sec=7)).markers[hand].pose.position)

    before, tool = place(), plant.tool_pose()[0]
    command = plant.joint_state()[0][6:13]
    command[0] += 0.3
    for _ in range(100):
        plant.advance(command)
    moved = np.linalg.norm(place() - before)
    assert moved > 0.1
    assert moved == pytest.approx(np.linalg.norm(plant.tool_pose()[0] - tool), rel=0.2)
    assert {marker.header.stamp.sec for marker in markers.at(plant.data).markers} == {7}


@pytest.mark.parametrize('task', TASKS)
def test_training_shows_the_goal_its_box_and_the_tools_way(task):
    env = make(task)
    env.reset(seed=0)
    interface, size = env.interface, env.goal.size
    way = [env.goal + 0.01 * step for step in range(30)]
    array = training_markers(interface, env.goal, way)
    assert_rviz_takes(array, interface.frame)
    goal, centre, workspace, trail, virtual = array.markers
    assert (virtual.ns, virtual.action) == ('virtual_goals', Marker.DELETE)
    padded = np.zeros((len(way) + 1, 3))
    padded[:, :size] = [*way, env.goal]
    for ball in (goal, centre):
        np.testing.assert_array_equal(vector(ball.pose.position), padded[-1])
    np.testing.assert_allclose(vector(goal.scale), 2 * interface.success_threshold)
    assert centre.scale.x < goal.scale.x
    np.testing.assert_array_equal([vector(point) for point in trail.points], padded[:-1])
    corners = np.array([vector(point) for point in workspace.points])
    assert len(corners) == 2 * {2: 4, 3: 12}[size]
    assert len({tuple(corner) for corner in corners}) == 2**size
    np.testing.assert_array_equal(corners.min(0)[:size], interface.goal_low)
    np.testing.assert_array_equal(corners.max(0)[:size], interface.goal_high)
    for first, second in corners.reshape(-1, 2, 3):
        assert np.count_nonzero(first != second) == 1  # an edge, not a diagonal


@pytest.mark.parametrize('task', TASKS)
def test_training_shows_virtual_goals_around_the_goal_if_there_are_any(task):
    env = make(task)
    env.reset(seed=0)
    size, threshold = env.goal.size, env.interface.success_threshold
    made = np.random.default_rng(0).random((300, size), np.float32)
    for offsets in (None, made[:0], made[:3], made):
        array = training_markers(env.interface, env.goal, [], goal_offsets=offsets)
        assert_rviz_takes(array, env.interface.frame)
        (cloud,) = [marker for marker in array.markers if marker.ns == 'virtual_goals']
        if offsets is None or not len(offsets):
            assert cloud.action == Marker.DELETE
            continue
        assert (cloud.type, cloud.action) == (Marker.POINTS, Marker.ADD)
        assert cloud.scale.x == cloud.scale.y == pytest.approx(threshold / 3)
        points = np.array([vector(point) for point in cloud.points])
        np.testing.assert_array_equal(points[:, :size], env.goal + offsets[:256])
        np.testing.assert_array_equal(points[:, size:], 0.0)


def test_trail_of_the_last_episode_is_taken_away_when_a_new_one_begins():
    env = make('fetch_reach')
    env.reset(seed=0)
    for trail in ([], [env.goal]):
        array = training_markers(env.interface, env.goal, trail)
        assert_rviz_takes(array, 'world')
        (gone,) = [marker for marker in array.markers if marker.ns == 'trail']
        assert gone.action == Marker.DELETE


def test_moving_the_markers_costs_little():
    model, shapes, frame = robot_of('fetch_reach')
    markers, data = RobotMarkers(shapes, frame), data_of(model)
    times = []
    for _ in range(50):
        start = time.thread_time()  # what others take does not count
        markers.at(data)
        times.append(time.thread_time() - start)
    assert sorted(times)[len(times) // 2] < 1e-3


WORKSPACE = ((0.2, -0.3, 0.1), (0.8, 0.3, 0.7))
BOX = ((0.1, -0.4, 0.0), (0.9, 0.4, 0.8))
STATUS = DeploymentStatus(frame='base', threshold=0.05, workspace=WORKSPACE, box=BOX)


def deployment(**changes):
    """Return the markers of a deployed policy by namespace."""
    trail = changes.pop('trail', ())
    array = deployment_markers(STATUS, Motion(**changes), trail)
    assert_rviz_takes(array, 'base')
    found = {marker.ns: marker for marker in array.markers}
    assert set(found) == {'box', 'goal', 'motion', 'trail', 'workspace'}
    assert len(found) == len(array.markers)
    return found


def test_deployment_shows_the_goal_which_turns_green_when_reached():
    assert deployment()['goal'].action == Marker.DELETE
    ahead = deployment(goal=np.array([0.5, 0.25, 0.125]))['goal']
    reached = deployment(goal=np.array([0.5, 0.25, 0.125]), reached=True)['goal']
    for ball in (ahead, reached):
        assert ball.action == Marker.ADD
        np.testing.assert_array_equal(vector(ball.pose.position), [0.5, 0.25, 0.125])
        np.testing.assert_allclose(vector(ball.scale), 0.1)
    assert reached.color.g > 2 * reached.color.r
    assert ahead.color.r > ahead.color.g


def test_deployment_shows_where_goals_may_be_and_where_the_tool_may_be():
    found = deployment()
    for name, (low, high) in (('workspace', WORKSPACE), ('box', BOX)):
        corners = np.array([vector(point) for point in found[name].points])
        assert len(corners) == 24 and len({tuple(corner) for corner in corners}) == 8
        np.testing.assert_array_equal(corners.min(0), low)
        np.testing.assert_array_equal(corners.max(0), high)
    assert found['workspace'].color != found['box'].color


def test_deployment_shows_how_the_tool_is_to_move_if_it_is():
    tool, velocity = np.array([0.5, 0.25, 0.125]), np.array([0.0, -0.125, 0.25])
    arrow = deployment(tool=tool, velocity=velocity)['motion']
    assert arrow.action == Marker.ADD
    start, end = (vector(point) for point in arrow.points)
    np.testing.assert_array_equal(start, tool)
    np.testing.assert_array_equal(end, tool + velocity)
    for still in (
        {},
        {'tool': tool},
        {'velocity': velocity},
        {'tool': tool, 'velocity': np.zeros(3)},
    ):
        assert deployment(**still)['motion'].action == Marker.DELETE


def test_deployment_shows_where_the_tool_has_been():
    way = [np.array([0.5, 0.25, 0.125 * step]) for step in range(4)]
    trail = deployment(trail=way)['trail']
    assert (trail.type, trail.action) == (Marker.LINE_STRIP, Marker.ADD)
    np.testing.assert_array_equal([vector(point) for point in trail.points], way)
    for short in ([], way[:1]):
        assert deployment(trail=short)['trail'].action == Marker.DELETE


@pytest.mark.ros
def test_the_trail_of_a_deployed_tool_grows_as_it_moves_and_begins_anew_with_a_goal(world):
    shown, rviz = world.peer(), world.peer()
    place = [np.zeros(3)]
    view = DeployMarkers(shown.node, STATUS, lambda: Motion(tool=place[0].copy()))
    listener = rviz.listen(MarkerArray, f'{shown.node.get_name()}/markers', RVIZ_QOS)

    def wait_for_trail(expected):
        def accept(array):
            (trail,) = [marker for marker in array.markers if marker.ns == 'trail']
            return [point.x for point in trail.points] == expected

        listener.wait_for(accept)

    wait_for_trail([])
    way = [0.0]
    for _ in range(3):
        place[0] = np.array([way[-1] + 0.25, 0.0, 0.0])
        way.append(way[-1] + 0.25)
        wait_for_trail(way)
    place[0] = np.array([way[-1] + 0.0005, 0.0, 0.0])  # It rests, as well as it can.
    for _ in range(3):
        wait_for_trail(way)
    view.begin_trail()
    wait_for_trail([])
    place[0] = np.array([2.0, 0.0, 0.0])
    wait_for_trail([way[-1] + 0.0005, 2.0])
    view.close()


@pytest.mark.ros
def test_deployment_is_shown_to_rviz_and_nothing_is_asked_while_nobody_looks(world):
    shown, asked = world.peer(), threading.Event()
    goal = np.array([0.5, 0.25, 0.125])

    def look():
        asked.set()
        return Motion(tool=goal, goal=goal, reached=True)

    done, ticks = threading.Event(), []
    view = DeployMarkers(shown.node, STATUS, look)
    shown.node.create_timer(0.05, lambda: ticks.append(0) or (len(ticks) > 10 and done.set()))
    assert done.wait(PATIENCE)
    assert not asked.is_set()
    rviz = world.peer()
    listener = rviz.listen(MarkerArray, f'{shown.node.get_name()}/markers', RVIZ_QOS)
    array = listener.wait_for(after=0)
    assert asked.is_set()
    assert_rviz_takes(array, 'base')
    (ball,) = [marker for marker in array.markers if marker.ns == 'goal']
    np.testing.assert_array_equal(vector(ball.pose.position), goal)
    view.close()
    rviz.wait_until(
        lambda: not rviz.node.count_publishers(f'{shown.node.get_name()}/markers'), 'closed'
    )
