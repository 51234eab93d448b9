"""An arm that no task knows, simulated from its YAML file and its URDF, seen from outside."""

from geometry_msgs.msg import PoseStamped
from mher_ros.control.arm_model import ArmModel
from mher_ros.control.robot import load_robot
import numpy as np
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import MarkerArray

pytestmark = pytest.mark.ros

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def stamp_of(message):
    return Time.from_msg(message.header.stamp).nanoseconds


def start(world, **parameters):
    """Return a peer of the simulated arm, which is faster than life."""
    process = world.node('sim_node', rate_factor=3.0, **parameters)
    process.wait_for(r': \d+ joints, commanded by')
    return world.peer()


@pytest.fixture(scope='module', params=['panda', 'ur5e'])
def simulated(request, shared_worlds):
    """Return (robot, a peer of its simulation, its joint states)."""
    robot = load_robot(request.param)
    peer = start(shared_worlds(), robot=request.param)
    return robot, peer, peer.listen(JointState, robot.topics.joint_states)


def wait_until_at(states, robot, target):
    def is_there(state):
        places = [state.position[state.name.index(name)] for name in robot.joints]
        return np.abs(np.array(places) - target).max() < 0.01

    return states.wait_for(is_there)


def home_of(robot):
    return np.array([robot.home[name] for name in robot.joints])


def test_it_is_commanded_where_the_real_arms_controllers_are(simulated):
    robot, peer, states = simulated
    assert peer.ask(Trigger, 'sim_node/reset').message.startswith(f'{robot.name}, realtime, pos')
    wait_until_at(states, robot, home_of(robot))
    target = home_of(robot) + 0.1
    trajectories = peer.talk(JointTrajectory, robot.topics.joint_trajectory)
    point = JointTrajectoryPoint(positions=target[::-1].tolist())
    trajectories.publish(JointTrajectory(joint_names=robot.joints[::-1], points=[point]))
    wait_until_at(states, robot, target)
    vectors = peer.talk(Float64MultiArray, robot.topics.joint_position)
    vectors.publish(Float64MultiArray(data=home_of(robot).tolist()))
    wait_until_at(states, robot, home_of(robot))


def test_what_it_describes_and_tells_is_enough_to_find_the_tool(simulated):
    robot, peer, states = simulated
    text = peer.listen(String, robot.topics.robot_description, LATCHED).wait_for(after=0).data
    model = ArmModel(robot, text)
    tools = peer.listen(PoseStamped, 'tool_pose')
    while True:
        tool = tools.wait_for()
        stamp = stamp_of(tool)
        state = states.wait_for(lambda state, stamp=stamp: stamp_of(state) >= stamp, after=0)
        if stamp_of(state) == stamp:  # else it was lost, as we were too slow to listen
            break
    by_name = dict(zip(state.name, state.position, strict=True))
    position, _ = model.tool_pose([by_name[name] for name in model.state_names])
    place = tool.pose.position
    np.testing.assert_allclose((place.x, place.y, place.z), position, atol=1e-9)
    assert tool.header.frame_id == robot.base_frame == model.base_frame


def test_it_is_seen(simulated):
    robot, peer, _ = simulated
    markers = peer.listen(MarkerArray, 'robot_markers').wait_for().markers
    assert {marker.header.frame_id for marker in markers} == {robot.base_frame}
    assert len(markers) >= len(robot.joints)


def test_a_robot_that_is_a_tasks_arm_is_simulated_with_its_forces(world):
    peer = start(world, robot='fetch')
    assert peer.ask(Trigger, 'sim_node/reset').message.startswith('fetch, realtime, positions')
    # Only the arm of the task has these.
    state = peer.listen(JointState, 'joint_states').wait_for()
    assert {'torso_lift_joint', *load_robot('fetch').joints} < set(state.name)


def test_wrong_robots_end_it_with_a_sentence(world, tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('model: nowhere.urdf\n')
    cases = (
        ({'robot': 'ur6'}, "robot takes one of .*panda.*; got 'ur6'"),
        ({'robot': 'panda', 'interface': 'twist'}, 'interface takes auto or joint with robot pan'),
        ({'robot': str(path)}, r'.*mine\.yaml: joints is needed; it is missing'),
    )
    for sim, sentence in [(world.node('sim_node', **given), text) for given, text in cases]:
        sim.wait_for(f'^sim_node: {sentence}')
        assert sim.end() == 2
