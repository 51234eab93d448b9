"""The simulated arm with drives on its joints, seen from outside."""

import time
import xml.etree.ElementTree as ElementTree

from geometry_msgs.msg import PoseStamped
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.ros.common.raw_messages import SECOND
from mher_ros.simulation.arms import ARMS
from mher_ros.tasks import make
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from sim_node_arm import SimNodeArm, stamp_of
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = pytest.mark.ros

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

TOOLS = {'fetch_reach': {'site': 'robot0:grip'}, 'sawyer_reach': {'body': 'hand'}}


@pytest.fixture(scope='module', params=ARMS)
def joints(request, shared_worlds):
    """Return (task, an arm that takes joint commands), faster than life."""
    task = request.param
    commands = (JointTrajectory, 'joint_trajectory')
    arm = SimNodeArm(
        shared_worlds(),
        commands,
        robot=task.removesuffix('_reach'),
        stepping='realtime',
        rate_factor=3.0,
    )
    arm.names = tuple(ARMS[task].joints)
    return task, arm


def positions(arm, state):
    return np.array([state.position[state.name.index(name)] for name in arm.names])


def trajectory(names, *points):
    message = JointTrajectory(joint_names=list(names))
    for seconds, place in points:
        point = JointTrajectoryPoint(positions=list(map(float, place)))
        point.time_from_start.sec = int(seconds)
        point.time_from_start.nanosec = round(SECOND * (seconds % 1.0))
        message.points.append(point)
    return message


def home(arm):
    arm.reset()
    return positions(arm, arm.states.messages[-1])


def wait_until_there(arm, target):
    reached = lambda state: np.abs(positions(arm, state) - target).max() < 0.01  # noqa: E731
    return arm.states.wait_for(reached)


def test_commands_move_the_joints_there(joints):
    _, arm = joints
    start = home(arm)
    target = start + 0.1 * np.array((1, -1, 1, -1, 1, -1, 1))
    publisher = arm.peer.talk(Float64MultiArray, 'commands')
    publisher.publish(Float64MultiArray(data=target.tolist()))
    reached = wait_until_there(arm, target)
    others = [i for i, name in enumerate(reached.name) if name not in arm.names]
    before = np.array(arm.states.messages[0].position)
    np.testing.assert_array_equal(np.array(reached.position)[others], before[others])


def test_a_trajectory_of_any_joint_order_is_followed_in_its_time(joints):
    _, arm = joints
    start = home(arm)
    target = start + 0.1 * np.array((-1, 1, 1, -1, -1, 1, 1))
    order = [3, 0, 6, 1, 5, 2, 4]
    names = [arm.names[i] for i in order]
    middle = 0.5 * (start + target)
    count = len(arm.states.messages)
    arm.publish(trajectory(names, (1.0, middle[order]), (2.0, target[order])))
    began = arm.states.wait_for(
        lambda state: np.abs(positions(arm, state) - start).max() > 1e-4, after=count
    )
    reached = wait_until_there(arm, target)
    seconds = (stamp_of(reached) - stamp_of(began)) / SECOND
    assert 1.5 < seconds < 2.5
    # On the way it is where the straight line is, but for how far the drives lag behind.
    for state in arm.states.messages[count:]:
        share = (stamp_of(state) - stamp_of(began)) / (2.0 * SECOND)
        if 0.0 < share < 1.0:
            line = start + share * (target - start)
            assert np.abs(positions(arm, state) - line).max() < 0.03


def test_a_reset_in_the_middle_of_a_trajectory_ends_it(joints):
    _, arm = joints
    start = home(arm)
    arm.publish(trajectory(arm.names, (3.0, start + 0.3)))
    arm.states.wait_for(lambda state: np.abs(positions(arm, state) - start).max() > 0.05)
    home(arm)
    first = stamp_of(arm.states.messages[-1])
    last = arm.states.wait_for(lambda state: stamp_of(state) > first + SECOND)
    assert np.abs(positions(arm, last) - start).max() < 1e-3


def test_a_trajectory_stands_still_while_time_does(joints):
    _, arm = joints
    start = home(arm)
    arm.publish(trajectory(arm.names, (3.0, start + 0.3)))
    moved = arm.states.wait_for(lambda state: np.abs(positions(arm, state) - start).max() > 0.02)
    arm.peer.ask(SetBool, 'sim_node/pause', data=True)
    held = stamp_of(arm.states.wait_for())
    began = time.monotonic()
    assert stamp_of(arm.states.wait_for(lambda _: time.monotonic() - began > 1.0)) == held
    arm.peer.ask(SetBool, 'sim_node/pause', data=False)
    reached = wait_until_there(arm, start + 0.3)
    assert 2.0 * SECOND < stamp_of(reached) - stamp_of(moved) < 4.0 * SECOND


@pytest.mark.parametrize('joints', ['fetch_reach'], indirect=True)
def test_joint_commands_that_make_no_sense_are_refused_and_counted(joints):
    _, arm = joints
    start = home(arm)
    refused = int(arm.figures()['messages refused'])
    vectors = arm.peer.talk(Float64MultiArray, 'commands')
    far = start + 1.0
    for vector, path in (
        (far[:6], trajectory(arm.names[:6], (0.0, far[:6]))),
        ((*far[:6], np.inf), trajectory([*arm.names[:6], 'elbow'], (0.0, far))),
        ((*far, 1.0), trajectory(arm.names, (1.0, far), (0.5, far))),
        (1e308 * far, trajectory(arm.names, (0.5, -1e308 * far), (1.0, 1e308 * far))),
        ((), trajectory(arm.names)),
    ):
        vectors.publish(Float64MultiArray(data=list(map(float, vector))))
        arm.publish(path)
        refused += 2
        arm.figures(messages_refused=refused)
    arm.process.wait_for('refused a message on /commands: 7 finite positions')
    assert np.abs(positions(arm, arm.states.messages[-1]) - start).max() < 1e-3


def test_the_tool_is_where_the_joints_put_it(joints):
    task, arm = joints
    start = home(arm)
    arm.publish(trajectory(arm.names, (0.0, start + 0.1)))
    tools = arm.peer.listen(PoseStamped, 'tool_pose')
    kinematics = ToolKinematics(make(task).model, **TOOLS[task])
    compared = 0
    while compared < 5:
        tool = tools.wait_for()
        stamp = stamp_of(tool)
        state = arm.states.wait_for(lambda state, stamp=stamp: stamp_of(state) >= stamp, after=0)
        if stamp_of(state) != stamp:
            continue  # lost, as we were too slow to listen
        assert tool.header.frame_id == state.header.frame_id == 'world'
        position, turn = kinematics.pose(state.position)
        place, quaternion = tool.pose.position, tool.pose.orientation
        np.testing.assert_allclose((place.x, place.y, place.z), position, atol=1e-6)
        told = (quaternion.w, quaternion.x, quaternion.y, quaternion.z)
        assert abs(np.dot(told, turn)) == pytest.approx(1.0, abs=1e-9)
        compared += 1


def test_a_latecomer_gets_the_robots_description(joints):
    _, arm = joints
    for _ in range(2):
        text = arm.peer.listen(String, 'robot_description', LATCHED).wait_for(after=0).data
        robot = ElementTree.fromstring(text)
        moving = {joint.get('name') for joint in robot.iter('joint')}
        assert robot.tag == 'robot'
        assert set(arm.names) <= moving
