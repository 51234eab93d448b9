"""Obstacles on the topic ``obstacles``, in front of an arm that moves."""

import dataclasses

from arm_models import load_arm, model_text
from deployed_policy import DeployedPolicy, HIGH, LOW
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.ros.common.status import ACCEPTED
import numpy as np
import pytest
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

CLEARANCE, TIMEOUT = 0.01, 0.5
GIVE_UP = 15.0
"""Time without progress [s]: a busy machine must not drop a goal on the way."""
RADIUS = 0.06
FILE = load_robot('fetch').folder / 'fetch.yaml'


@pytest.fixture(scope='module')
def shared(shared_world, policy, tmp_path_factory):
    """Return a node with its arm that tests take turns with."""
    path = tmp_path_factory.mktemp('robot') / 'fetch.yaml'
    text = f'collision: {{clearance: {CLEARANCE}, obstacle_timeout: {TIMEOUT}}}\n'
    path.write_text(FILE.read_text() + text)
    options = {'robot': str(path), 'safety.progress_timeout': GIVE_UP}
    deployed = DeployedPolicy(shared_world, policy, 'joint_trajectory', **options)
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.robot_file = str(path)
    deployed.obstacles = deployed.peer.talk(MarkerArray, 'obstacles')
    yield deployed
    deployed.close()


@pytest.fixture
def deployed(shared):
    """Return the node, without obstacles, and with an arm that is at rest at the low corner."""
    publish(shared, marker(action=Marker.DELETEALL))
    shared.wait_for_status(lambda told: told.obstacles == 0 and told.state not in WITHOUT_GOALS)
    shared.go(LOW)
    shared.wait_until_reached()
    return shared


LOST, REFUSED = WITHOUT_GOALS = 'obstacle_lost', 'obstacle_refused'


def marker(position=(0.0, 0.0, 0.0), kind=Marker.SPHERE, **changes):
    found = Marker(type=kind, ns=changes.pop('ns', 'block'), id=changes.pop('id', 7))
    found.header.frame_id = changes.pop('frame', 'world')
    found.pose.position.x, found.pose.position.y, found.pose.position.z = map(float, position)
    edges = changes.pop('scale', (2.0 * RADIUS,) * 3)
    found.scale.x, found.scale.y, found.scale.z = map(float, edges)
    for name, value in changes.items():
        setattr(found, name, value)
    return found


def publish(deployed, *markers):
    deployed.obstacles.publish(MarkerArray(markers=list(markers)))


def nearest(positions, place):
    """Return the distance of a ball of ``RADIUS`` from the arm, as one of the robot file [m]."""
    ball = Obstacle('ball', 'sphere', tuple(map(float, place)), size=(RADIUS, 0.0, 0.0))
    robot, _ = load_arm('fetch')
    options = CollisionOptions(enabled=True)
    robot = dataclasses.replace(robot, scene=(ball,), collision=options)
    arm = ArmModel(robot, model_text('fetch'))
    query = PairDistances(arm.collision)
    query.move(positions[arm.order])
    pairs = [
        pair for pair in range(len(arm.collision.pairs)) if 'ball' in arm.collision.names(pair)
    ]
    return query.evaluate(np.array(pairs)).min()


def block(deployed):
    """Send the arm to a goal, put a ball there meanwhile, and return when the arm rests."""
    deployed.move()
    goal = np.array(deployed.status().goal)
    publish(deployed, marker(goal))
    deployed.wait_for_status(lambda status: status.obstacles == 1)
    last = [np.zeros(3), 0]

    def rests():
        is_still = np.linalg.norm(deployed.arm.tool - last[0]) < 1e-4
        last[:] = deployed.arm.tool, last[1] + 1 if is_still else 0
        return last[1] > 50

    deployed.peer.wait_until(rests, 'the arm rests', deployed.status)
    return goal


def test_an_arm_stops_short_of_an_obstacle_and_goes_on_once_it_is_deleted(deployed):
    goal = block(deployed)
    assert np.linalg.norm(deployed.arm.tool - goal) > RADIUS
    assert CLEARANCE - 1e-3 < nearest(deployed.arm.positions, goal) < CLEARANCE + 0.05
    assert deployed.status().state == 'running'
    publish(deployed, marker(action=Marker.DELETE))
    deployed.wait_until_reached()


def test_a_goal_that_is_blocked_is_dropped_and_the_obstacle_is_named(deployed):
    block(deployed)
    dropped = deployed.wait_for_status(lambda status: status.state == 'blocked')
    assert 'block/7' in dropped.reason


def test_a_goal_inside_an_obstacle_is_refused(deployed):
    publish(deployed, marker((LOW + HIGH) / 2))
    deployed.wait_for_status(lambda status: status.obstacles == 1)
    answered = deployed.send((LOW + HIGH) / 2)
    assert answered.answer == 'inside_obstacle'
    assert 'block/7' in answered.answer_text


WRONG = {
    'frame_unknown': marker(frame='nowhere'),
    'bad_size': marker(scale=(0.1, 0.0, 0.1)),
    'bad_message': marker((0.0, float('nan'), 0.0)),
    'unsupported': marker(kind=Marker.MESH_RESOURCE),
}


@pytest.mark.parametrize('code', sorted(WRONG))
def test_an_obstacle_that_cannot_be_used_stops_the_arm_until_it_is_deleted(deployed, code):
    before = deployed.status().obstacles_refused
    deployed.move()
    deployed.expect_one_stop(lambda: publish(deployed, WRONG[code]))
    refused = deployed.wait_for_status(lambda status: status.state == REFUSED)
    assert refused.obstacles_refused > before
    assert refused.last_drop == REFUSED
    assert refused.obstacle_answer == code
    assert refused.obstacle_text.startswith('block/7: ')
    assert 'block/7' in refused.reason
    assert refused.obstacles == 0
    figures = deployed.peer.figures('policy_node')
    assert figures['obstacle_text'] == refused.obstacle_text
    assert deployed.expect_no_goal_is_taken() == REFUSED
    publish(deployed, marker(action=Marker.DELETE))
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.go()


def test_a_text_is_refused_and_the_arm_moves_on(deployed):
    before = deployed.status().obstacles_refused
    deployed.move()
    publish(deployed, marker(kind=Marker.TEXT_VIEW_FACING, text='a table'))
    deployed.wait_for_status(lambda status: status.obstacles_refused > before)
    deployed.wait_until_reached()


def test_more_than_there_are_slots_stop_the_arm(deployed):
    deployed.move()
    publish(deployed, *(marker((0.0, 0.0, 3.0), id=number) for number in range(SLOTS + 1)))
    full = deployed.wait_for_status(lambda status: status.state == REFUSED)
    assert full.obstacles == SLOTS
    assert full.obstacle_answer == 'too_many'
    assert full.obstacle_text.startswith(f'block/{SLOTS}: ')
    publish(deployed, marker(id=SLOTS, action=Marker.DELETE))
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.go()


@pytest.mark.parametrize('qos', [LATCHED, 10], ids=['latched', 'volatile'])
def test_every_publisher_is_received_and_a_latched_one_also_if_it_was_earlier(
    world, policy, shared, qos
):
    """Each message once: the numbers of refusals say how often one was taken."""
    publisher = world.peer().node.create_publisher(MarkerArray, 'obstacles', qos)
    wrong = marker(kind=Marker.TEXT_VIEW_FACING)
    if qos is LATCHED:
        publisher.publish(MarkerArray(markers=[marker((0.0, 0.0, 3.0)), wrong]))
    options = {'robot': shared.robot_file}
    deployed = DeployedPolicy(world, policy, 'joint_trajectory', **options)
    deployed.wait_until_active()
    if qos is not LATCHED:
        deployed.peer.wait_until(publisher.get_subscription_count, 'a subscriber')
        publisher.publish(MarkerArray(markers=[marker((0.0, 0.0, 3.0)), wrong]))
    deployed.wait_for_status(lambda status: status.obstacles_refused == 1)
    publisher.publish(MarkerArray(markers=[marker((0.0, 0.0, 4.0), id=8), wrong]))
    deployed.wait_for_status(lambda status: status.obstacles_refused == 2)
    deployed.wait_for_heartbeats()
    assert deployed.status().obstacles_refused == 2
    assert deployed.status().obstacles == 2
    deployed.close()


def lose(deployed, how):
    """Expect that the arm brakes, and that no goal is accepted."""
    deployed.expect_one_stop(how)
    lost = deployed.wait_for_status(lambda status: status.state == LOST)
    assert lost.last_drop == LOST
    assert 'block/7' in lost.reason or 'moving/7' in lost.reason
    assert deployed.send(deployed.far_goal()).answer == LOST


def test_an_obstacle_whose_frame_is_lost_stops_the_arm_until_it_is_known(deployed):
    publish(deployed, marker((0.0, 0.0, 3.0)))
    deployed.wait_for_status(lambda status: status.obstacles == 1)
    deployed.move()
    lose(deployed, lambda: publish(deployed, marker((0.0, 0.0, 3.0), frame='nowhere')))
    publish(deployed, marker((0.0, 0.0, 3.0)))
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.go()


def test_an_obstacle_that_moves_and_is_no_longer_updated_stops_the_arm(deployed):
    deployed.move()
    lose(deployed, lambda: publish(deployed, marker((0.0, 0.0, 3.0), ns='moving')))
    publish(deployed, marker(ns='moving', action=Marker.DELETE))
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.go()


def test_a_message_that_cannot_be_read_stops_the_arm_until_all_is_deleted(deployed):
    publish(deployed, marker((0.0, 0.0, 3.0)))
    deployed.wait_for_status(lambda status: status.obstacles == 1)
    deployed.obstacles.publish(b'\x00\x01\x00\x00\xff\xff\xff\x7f' + b'\x00' * 8)
    refused = deployed.wait_for_status(lambda status: status.state == 'obstacle_refused')
    assert refused.obstacle_answer == 'bad_message'
    assert refused.obstacles == 1
    publish(deployed, marker(action=Marker.DELETEALL))
    deployed.wait_for_status(lambda status: status.state != 'obstacle_refused')
    deployed.go()


def test_obstacles_are_shown(deployed):
    markers = deployed.peer.listen(MarkerArray, 'policy_node/markers')
    publish(deployed, marker((0.3, 0.2, 3.0), kind=Marker.CYLINDER, scale=(0.1, 0.1, 0.5)))

    def shown(array):
        return [one for one in array.markers if one.ns == 'obstacles' and one.action == Marker.ADD]

    (found,) = shown(markers.wait_for(shown))
    assert (found.type, found.header.frame_id) == (Marker.CYLINDER, 'world')
    assert (found.pose.position.x, found.scale.z) == (0.3, 0.5)
    publish(deployed, marker(action=Marker.DELETE))
    gone = markers.wait_for(lambda array: not shown(array))
    assert sum(one.ns == 'obstacles' for one in gone.markers) == SLOTS


def test_without_collision_avoidance_nobody_subscribes(deploy, tmp_path):
    path = tmp_path / 'fetch.yaml'
    path.write_text(FILE.read_text() + 'collision: {enabled: false}\n')
    deployed = deploy('joint_trajectory', robot=str(path))
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    assert deployed.peer.node.count_subscribers('obstacles') == 0
    assert deployed.send(deployed.far_goal()).answer == ACCEPTED
