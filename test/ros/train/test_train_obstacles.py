"""Obstacles from a topic, in front of an arm that a learner moves in real time."""

import math
import time

from mher_ros.control.safety_monitor import SafetyOptions
from mher_ros.control.stop_latch import StopLatch
from mher_ros.errors import ArmError, EpisodeLostError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import Obstacle
from mher_ros.ros.common.status import TrainingStatus
from mher_ros.ros.train.arm_env import ArmEnv
from mher_ros.ros.train.real_time_link import RealTimeLink
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np
from obstacle_judge import ObstacleJudge
import pytest
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

CLEARANCE = 0.02
TURN = 0.6
"""By which the pan joint turns until the tool is at the wall [rad]."""
EDGES = (0.4, 0.04, 1.6)
"""Of the wall, around which the arm cannot slide [m]."""
PAN = 'shoulder_pan_joint'


@pytest.fixture
def robot_file(tmp_path):
    path = tmp_path / 'ur5e.yaml'
    text = (load_robot('ur5e').folder / 'ur5e.yaml').read_text()
    path.write_text(f'{text}\ncollision: {{clearance: {CLEARANCE}, obstacle_timeout: 2.0}}\n')
    return path


def wall(place, **changes):
    """Return a message with an upright wall, whose edge points to the axis of the pan joint."""
    found = Marker(ns='block', id=7, type=changes.pop('kind', Marker.CUBE))
    found.header.frame_id = 'base_link'
    found.pose.position.x, found.pose.position.y, found.pose.position.z = map(float, place)
    yaw = math.atan2(place[1], place[0])
    found.pose.orientation.w, found.pose.orientation.z = math.cos(yaw / 2), math.sin(yaw / 2)
    found.scale.x, found.scale.y, found.scale.z = EDGES
    for name, value in changes.items():
        setattr(found, name, value)
    return MarkerArray(markers=[found])


class Learner:
    """A link to a simulated UR5e, a publisher of obstacles, and what is seen of the arm."""

    def __init__(self, world, path):
        world.sim_node(robot='ur5e', stepping='realtime')
        self.robot = load_robot(str(path))
        options = ReachOptions(robot=str(path))
        task = Reach(options, arm=ArmModel(self.robot.simulated()))
        patient = SafetyOptions(resume_within=30.0)  # the machine may be busy
        node = world.peer().node
        self.link = RealTimeLink(node, task, StopLatch(), timeout=30.0, safety=patient)
        self.env, self.task = ArmEnv(task, self.link), task
        peer = world.peer()
        self.states = peer.listen(JointState, 'joint_states')
        self.publisher = peer.node.create_publisher(MarkerArray, 'obstacles', 10)
        both = 2  # sim_node also takes obstacles
        peer.wait_until(lambda: self.publisher.get_subscription_count() == both, 'subscribers')

    def publish(self, array, count):
        """Publish an obstacle, and return when the learner knows it."""
        self.publisher.publish(array)
        end = time.monotonic() + 30.0
        while self.link.obstacles.figures()['obstacles'] != count:
            assert time.monotonic() < end, self.link.obstacles.figures()
            time.sleep(0.01)

    def pan(self):
        state = self.states.wait_for()
        return state.position[state.name.index(PAN)]

    def turn(self, is_enough, patience=60.0):
        """Turn the pan joint until it is enough; return whether it was, before it was too late."""
        action = np.zeros(6, np.float32)
        action[self.task.joint_names.index(PAN)] = 1.0
        end = time.monotonic() + patience
        while not is_enough():
            if time.monotonic() > end:
                return False
            try:
                self.env.step(action)
            except EpisodeLostError:  # joint states came too late
                self.env.reset(seed=1)
        return True

    def ahead(self, turn):
        """Return where the tool is after the pan joint has turned by this angle [rad]."""
        state = self.states.wait_for()
        places = [state.position[state.name.index(name)] for name in self.task.joint_names]
        x, y, z = self.task.arm.tool_position(np.array(places))
        along, across = math.cos(turn), math.sin(turn)
        return np.array((along * x - across * y, across * x + along * y, z))


@pytest.fixture
def learner(world, robot_file):
    learner = Learner(world, robot_file)
    learner.env.reset(seed=1)
    yield learner
    learner.env.close()


def test_an_obstacle_that_comes_while_the_arm_explores_stops_it(learner):
    start = learner.pan()
    place = learner.ahead(TURN)
    yaw = math.atan2(place[1], place[0])
    judge = ObstacleJudge(
        learner.robot, Obstacle('wall', 'box', tuple(place), (0.0, 0.0, yaw), EDGES)
    )
    assert learner.turn(lambda: learner.pan() > start + 0.05)
    assert judge.distance(learner.states.wait_for()) > 4.0 * CLEARANCE
    learner.publish(wall(place), 1)
    seen = len(learner.states.messages)

    def distances():
        return [judge.distance(state) for state in learner.states.messages[seen::10]]

    assert not learner.turn(lambda: learner.pan() > start + TURN, patience=6.0)
    near = min(distances())
    assert CLEARANCE - 1e-3 < near < CLEARANCE + 0.02
    learner.publish(wall(place, action=Marker.DELETE), 0)
    assert learner.turn(lambda: learner.pan() > start + TURN)
    assert judge.distance(learner.states.wait_for()) < 0.0  # there was something to avoid


def test_one_that_moves_and_is_not_updated_any_longer_ends_the_run(learner):
    place = learner.ahead(-2.0)  # far away
    with pytest.raises(ArmError, match='obstacle_lost.*moving/7'):
        learner.publish(wall(place, ns='moving'), 1)
        learner.turn(lambda: False, patience=30.0)
    assert learner.link.ended_by == 'obstacle_lost'


def test_a_run_ends_when_an_obstacle_cannot_be_used_and_waits_for_that_at_its_start(
    world, robot_file, tmp_path
):
    world.sim_node(robot='ur5e', stepping='realtime')
    peer = world.peer()
    publisher = peer.node.create_publisher(MarkerArray, 'obstacles', 10)
    parameters = {'robot': str(robot_file), 'stepping': 'realtime', 'arm_timeout': 60.0}
    steps = {'schedule.steps': '100000'}
    train = world.train_node(tmp_path / 'run', 'reach', steps, **parameters)
    statuses = peer.follow(TrainingStatus, 'train_node')
    statuses.wait_for(lambda told: told.arm == 'running', after=0)
    publisher.publish(wall((0.0, 0.0, 3.0)))
    used = statuses.wait_for(lambda told: told.obstacles == 1)
    assert used.obstacles_refused == 0
    markers = peer.listen(MarkerArray, 'train_node/markers')
    markers.wait_for(
        lambda shown: any(
            one.ns == 'obstacles' and one.action == Marker.ADD for one in shown.markers
        )
    )
    publisher.publish(wall((0.4, 0.1, 0.3), id=8, kind=Marker.MESH_RESOURCE))
    told = statuses.wait_for(lambda told: told.ended_by)
    assert told.ended_by == told.arm == 'obstacle_refused'
    assert (told.obstacle_answer, told.obstacles_refused) == ('unsupported', 1)
    assert 'block/8' in told.obstacle_text
    assert train.end() == 1
    states = peer.listen(JointState, 'joint_states')
    first = np.array(states.wait_for().position)
    time.sleep(0.5)
    np.testing.assert_allclose(states.wait_for().position, first, atol=0.01)


def test_in_lockstep_nobody_subscribes_and_that_is_said(world, robot_file, tmp_path):
    arm = world.node('sim_node', robot=str(robot_file), stepping='lockstep')
    arm.wait_for('ur5e: .* joints, commanded by')
    train = world.train_node(tmp_path / 'run', 'reach', robot=str(robot_file))
    train.wait_for('in lockstep, obstacles from topics are not avoided')
    statuses = world.peer().follow(TrainingStatus, 'train_node')
    statuses.wait_for(lambda told: told.steps > 0, after=0)
    assert world.peer().node.count_subscribers('obstacles') == 0
