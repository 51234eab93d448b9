"""Obstacles from a topic in the simulation: a simulated arm that is commanded into one."""

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.ros.common.status import SimulationStatus
import numpy as np
import pytest
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.ros

PAN = 1.0
"""By which the arm is commanded to turn about its base [rad]."""
HALF = PAN / 2
"""Where the obstacle is."""
MOST = 0.05  # largest error of a joint that has arrived [rad]
WEAK = 200  # joint states within which the arm would arrive


@pytest.fixture(scope='module')
def arm(shared_worlds):
    return Arm(shared_worlds())


class Arm:
    """A simulated UR5e, commanded without a filter."""

    def __init__(self, world):
        self.robot = robot = load_robot('ur5e')
        world.sim_node(robot='ur5e', stepping='realtime', command_timeout=60.0)
        self.peer = peer = world.peer()
        self.states = peer.listen(JointState, robot.topics.joint_states)
        self.statuses = peer.follow(SimulationStatus, 'sim_node')
        self.commands = peer.talk(Float64MultiArray, robot.topics.commands['joint_position'])
        self.obstacles = peer.talk(MarkerArray, 'obstacles', LATCHED)
        self.home = np.array([robot.home[name] for name in robot.joints])
        model = ArmModel(robot.simulated())
        places = self.home.copy()
        places[robot.joints.index('shoulder_pan_joint')] = HALF
        order = [robot.joints.index(name) for name in model.state_names]
        self.half_way = model.tool_position(places[order])

    def command(self, pan):
        target = self.home.copy()
        target[self.robot.joints.index('shoulder_pan_joint')] = pan
        self.commands.publish(Float64MultiArray(data=target.tolist()))

    def pan(self):
        state = self.states.wait_for()
        return state.position[state.name.index('shoulder_pan_joint')]

    def wait_for_pan(self, pan):
        self.peer.wait_until(lambda: abs(self.pan() - pan) < MOST, f'the arm at {pan}', self.pan)

    def publish(self, **changes):
        found = Marker(ns='block', id=7, type=changes.pop('kind', Marker.CUBE))
        found.header.frame_id = changes.pop('frame', 'base_link')
        place = found.pose.position
        place.x, place.y, place.z = map(float, changes.pop('at', self.half_way))
        found.scale.x, found.scale.y, found.scale.z = changes.pop('scale', (0.1, 0.1, 1.0))
        for name, value in changes.items():
            setattr(found, name, value)
        self.obstacles.publish(MarkerArray(markers=[found]))

    def wait_for_status(self, accept):
        return self.statuses.wait_for(accept, after=-2)


def test_an_obstacle_blocks_the_arm_until_it_is_deleted(arm):
    arm.command(0.0)
    arm.wait_for_pan(0.0)
    arm.publish()
    arm.wait_for_status(lambda status: status.obstacles == 1)
    arm.command(PAN)
    arm.peer.wait_until(lambda: arm.pan() > 0.1, 'it moves')
    for _ in range(WEAK):
        assert arm.pan() < HALF
    touched = arm.wait_for_status(lambda status: status.contacts)
    assert 'block/7' in touched.contact_between
    arm.publish(action=Marker.DELETE)
    arm.wait_for_status(lambda status: status.obstacles == 0)
    arm.wait_for_pan(PAN)


WRONG = {
    'frame_unknown': {'frame': 'nowhere'},
    'bad_size': {'scale': (0.1, 0.0, 0.1)},
    'unsupported': {'kind': Marker.MESH_RESOURCE},
}


@pytest.mark.parametrize('code', sorted(WRONG))
def test_one_that_cannot_be_used_is_refused_and_that_is_said(arm, code):
    before = arm.wait_for_status(lambda status: True).obstacles_refused
    arm.publish(**WRONG[code])
    refused = arm.wait_for_status(lambda status: status.obstacles_refused > before)
    assert refused.obstacle_answer == code
    assert refused.obstacle_text.startswith('block/7: ')
    assert refused.obstacles == 0
    arm.publish(action=Marker.DELETE)


def test_in_lockstep_it_does_not_subscribe(world):
    world.sim_node(robot='ur5e')
    peer = world.peer()
    statuses = peer.follow(SimulationStatus, 'sim_node')
    assert statuses.wait_for(after=0).stepping == 'lockstep'
    assert peer.node.count_subscribers('obstacles') == 0
