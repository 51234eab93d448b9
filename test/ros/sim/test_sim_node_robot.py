"""An arm that no task knows, simulated from its YAML file and its URDF, seen from outside."""

from pathlib import Path
import re

from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.files import share_folder
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import find_file
from mher_ros.robots.robot import load_robot
from mher_ros.ros.common.status import SimulationStatus
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.urdf_scene import with_found_meshes
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from ros_peer import Listener
from rosgraph_msgs.msg import Clock
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


def check_status(peer, name):
    status = peer.follow(SimulationStatus, 'sim_node').wait_for(after=0)
    assert (status.arm, status.stepping, status.commands) == (name, 'realtime', 'positions')


def test_it_is_commanded_where_the_real_arms_controllers_are(simulated):
    robot, peer, states = simulated
    assert peer.ask(Trigger, 'sim_node/reset').success
    check_status(peer, robot.name)
    wait_until_at(states, robot, home_of(robot))
    target = home_of(robot) + 0.1
    trajectories = peer.talk(JointTrajectory, robot.topics.commands['joint_trajectory'])
    point = JointTrajectoryPoint(positions=target[::-1].tolist())
    trajectories.publish(JointTrajectory(joint_names=robot.joints[::-1], points=[point]))
    wait_until_at(states, robot, target)
    vectors = peer.talk(Float64MultiArray, robot.topics.commands['joint_position'])
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


def tool_of(message):
    place = message.pose.position
    return np.array((place.x, place.y, place.z))


@pytest.mark.parametrize('output', ['twist', 'pose', 'joint_velocity'])
def test_it_takes_velocities_and_poses_and_stops_without_commands(simulated, output):
    robot, peer, states = simulated
    peer.ask(Trigger, 'sim_node/reset')
    wait_until_at(states, robot, home_of(robot))
    tools = peer.listen(PoseStamped, 'tool_pose')
    start = tools.wait_for()
    goal = tool_of(start) + (0.0, 0.04, 0.0)
    message = {
        'twist': TwistStamped(),
        'pose': PoseStamped(pose=start.pose),
        'joint_velocity': Float64MultiArray(data=np.full(len(robot.joints), 0.1).tolist()),
    }[output]
    if output != 'joint_velocity':
        message.header.frame_id = robot.base_frame
    if output == 'twist':
        message.twist.linear.y = 0.05
    if output == 'pose':
        message.pose.position.y = goal[1]
    commands = peer.talk(type(message), robot.topics.commands[output])
    moved = Listener()
    peer.node.create_subscription(PoseStamped, 'tool_pose', moved, 10)
    if output == 'joint_velocity':
        commands.publish(message)
        moving = states.wait_for(lambda it: min(map(abs, joints_of(it, robot, 'velocity'))) > 0.05)
    else:
        count = 0
        while not moved.messages or tool_of(moved.messages[-1])[1] < goal[1] - 0.005:
            commands.publish(message)
            moved.wait_for()
            count += 1
            assert count < 300
        moving = moved.messages[-1]

    # By their stamps: what a long queue brings next may be older than that.
    def is_at_rest(state):
        speed = max(map(abs, joints_of(state, robot, 'velocity')))
        return stamp_of(state) > stamp_of(moving) and speed < 1e-3

    rest = stamp_of(states.wait_for(is_at_rest))
    if output == 'pose':
        tool = tools.wait_for(lambda tool: stamp_of(tool) >= rest, after=0)
        np.testing.assert_allclose(tool_of(tool), goal, atol=0.005)


def joints_of(state, robot, what):
    return [getattr(state, what)[state.name.index(name)] for name in robot.joints]


def test_poses_that_make_no_sense_are_refused(simulated):
    robot, peer, states = simulated
    poses = peer.talk(PoseStamped, robot.topics.commands['pose'])
    before = int(peer.figures('sim_node', lambda told: True)['messages refused'])
    flat = PoseStamped()
    flat.pose.orientation.w = 0.0
    poses.publish(flat)
    peer.figures('sim_node', lambda told: int(told['messages refused']) == before + 1)
    lost = PoseStamped()
    lost.header.frame_id, lost.pose.orientation.w = 'map', 1.0
    poses.publish(lost)
    peer.figures('sim_node', lambda told: int(told['messages refused']) == before + 2)
    far = PoseStamped()
    far.pose.position.x, far.pose.orientation.w = 1e308, 1.0
    poses.publish(far)
    peer.figures('sim_node', lambda told: int(told['messages refused']) == before + 3)


def test_where_positions_and_velocities_share_a_topic_its_output_says_which_come(world, tmp_path):
    text = (Path(share_folder()) / 'config' / 'robots' / 'ur5e.yaml').read_text()
    path = tmp_path / 'arm.yaml'
    path.write_text(text[: text.index('topics:')])
    peer = start(world, robot=str(path), output='joint_velocity', delay=0.1, lag=0.05)
    states, robot = peer.listen(JointState, 'joint_states'), load_robot(path)
    commands = peer.talk(Float64MultiArray, 'commands')
    commands.publish(Float64MultiArray(data=[0.2] * 6))
    states.wait_for(lambda state: min(joints_of(state, robot, 'velocity')) > 0.1)
    states.wait_for(lambda state: max(map(abs, joints_of(state, robot, 'velocity'))) < 1e-3)


def test_description_and_links_are_left_to_a_robot_state_publisher(world):
    peer = start(world, robot='ur5e')
    assert peer.listen(String, 'robot_description', LATCHED).wait_for(after=0).data
    publisher = peer.node.create_publisher(String, 'robot_description', LATCHED)
    peer.wait_until(lambda: 'sim_node' not in publishers(peer), 'it withdraws its own')
    peer.node.destroy_publisher(publisher)
    peer.wait_until(lambda: publishers(peer) == ['sim_node'], 'it takes over again')


def test_it_can_be_told_to_publish_no_description(world):
    peer = start(world, robot='ur5e', publish_robot_description='never')
    peer.listen(PoseStamped, 'tool_pose').wait_for()  # made after the description would be
    assert publishers(peer) == []


def test_in_real_time_the_clock_goes_on_with_every_state(world):
    peer = start(world, robot='ur5e')
    clock = peer.listen(Clock, 'clock')
    states = peer.listen(JointState, 'joint_states')
    clock.wait_for(lambda _: len(clock.messages) > 60, after=0)
    states.wait_for(lambda _: len(states.messages) > 60, after=0)
    times = [Time.from_msg(message.clock).nanoseconds for message in clock.messages]
    stamps = [stamp_of(state) for state in states.messages]
    assert len({*times} & {*stamps}) > 30  # all but those that only one of the two received


def publishers(peer):
    """Return the names of the nodes that describe the arm."""
    found = peer.node.get_publishers_info_by_topic('robot_description')
    return [end.node_name for end in found]


def test_a_robot_that_is_a_tasks_arm_is_simulated_with_its_forces(world):
    peer = start(world, robot='fetch')
    check_status(peer, 'fetch')
    # Only the arm of the task has these.
    state = peer.listen(JointState, 'joint_states').wait_for()
    assert {'torso_lift_joint', *load_robot('fetch').joints} < set(state.name)


def test_wrong_robots_end_it_with_a_sentence(world, tmp_path):
    path = tmp_path / 'mine.yaml'
    path.write_text('model: nowhere.urdf\n')
    cases = (
        ({'robot': 'ur6'}, "robot takes one of .*panda.*; got 'ur6'"),
        ({'robot': 'panda', 'output': 'torque'}, "output takes one of .*; got 'torque'"),
        ({'task': 'reacher', 'delay': 0.1}, 'delay must be 0 without a robot, got 0.1'),
        ({'task': 'reacher', 'randomise': 1.0}, 'randomise must be 0 without a robot, got 1.0'),
        ({'robot': 'ur5e', 'randomise': 2.5}, 'randomise must be at least .* got 2.5'),
        ({'robot': str(path)}, r'.*mine\.yaml: joints is needed; it is missing'),
    )
    for sim, sentence in [(world.node('sim_node', **given), text) for given, text in cases]:
        sim.wait_for(f'^sim_node: {sentence}')
        assert sim.end() == 2


def test_in_real_time_its_plant_is_drawn_at_the_start_and_by_a_reset_with_a_seed(world):
    peer, robot = start(world, robot='ur5e', randomise=1.0, seed=3), load_robot('ur5e')
    states = peer.listen(JointState, robot.topics.joint_states)
    status = peer.follow(SimulationStatus, 'sim_node').wait_for(after=0)
    assert status.randomise == 1.0

    def steps():
        """Return positions in steps of the encoders that were drawn."""
        for _ in range(10):  # the first ones may be from before a reset
            seen = states.wait_for()
        places = [seen.position[seen.name.index(name)] for name in robot.joints]
        return np.array(places) / drawn.quantisation

    arm = simulated_robot(robot, randomise=1.0)
    for seed in (3, 4, None):
        if seed is not None:
            arm.reset(seed)
            drawn = arm.draw
        if seed != 3:  # without another seed the plant stays
            if seed is not None:
                given = [Parameter('seed', value=seed).to_parameter_msg()]
                peer.ask(SetParameters, 'sim_node/set_parameters', parameters=given)
            assert peer.ask(Trigger, 'sim_node/reset').success
        found = steps()
        np.testing.assert_allclose(found, np.round(found), atol=1e-6)


@pytest.mark.parametrize('start', ['1,2', 'home', '0,0,0,0,0,nan'])
def test_a_start_that_is_none_is_refused_and_the_arm_stays(simulated, start):
    robot, peer, states = simulated
    given = [Parameter('start', value=start).to_parameter_msg()]
    peer.ask(SetParameters, 'sim_node/set_parameters', parameters=given)
    answer = peer.ask(Trigger, 'sim_node/reset')
    assert not answer.success
    assert answer.message.startswith('start: ')
    given = [Parameter('start', value='').to_parameter_msg()]
    peer.ask(SetParameters, 'sim_node/set_parameters', parameters=given)
    assert peer.ask(Trigger, 'sim_node/reset').success
    wait_until_at(states, robot, home_of(robot))


def write_arm(tmp_path, robot, spoil):
    """Write the file of a robot whose URDF ``spoil`` has changed, and return its path."""
    known = load_robot(robot)
    model = find_file(known.simulation_model, known.folder)
    (tmp_path / 'arm.urdf').write_text(spoil(with_found_meshes(model.read_text(), model.parent)))
    text = (Path(share_folder()) / 'config' / 'robots' / f'{robot}.yaml').read_text()
    path = tmp_path / 'arm.yaml'
    path.write_text(text.replace(known.simulation_model, str(tmp_path / 'arm.urdf')))
    return path


def test_an_arm_without_masses_is_simulated_without_forces_and_says_so(world, tmp_path):
    def spoil(text):
        return re.sub(r'<mass value="[^"]*"', '<mass value="0"', text)

    process = world.node('sim_node', robot=str(write_arm(tmp_path, 'ur5e', spoil)))
    process.wait_for('arm passes through obstacles: no link .* has a mass')
    status = world.peer().follow(SimulationStatus, 'sim_node').wait_for(after=0)
    assert 'has a mass' in status.no_forces
    assert status.contacts is status.deepest_contact is None


def test_a_mass_that_is_none_ends_it_with_a_sentence(world, tmp_path):
    def spoil(text):
        return re.sub(r'<mass value="[^"]*"', '<mass value="nan"', text)

    process = world.node('sim_node', robot=str(write_arm(tmp_path, 'ur5e', spoil)))
    process.wait_for('^sim_node: .*a mass from 0 to .* is expected for base_link, got nan')
    assert process.end() == 1


def test_it_says_what_the_arm_touches_until_it_is_reset(world, tmp_path):
    text = (Path(share_folder()) / 'config' / 'robots' / 'ur5e.yaml').read_text()
    path = tmp_path / 'arm.yaml'
    post = '{shape: cylinder, position: [0.3, 0.4, 0.5], radius: 0.08, length: 1.0}'
    path.write_text(f'{text}\nscene:\n  post: {post}\n')
    peer, robot = start(world, robot=str(path)), load_robot(path)
    told = peer.follow(SimulationStatus, 'sim_node')
    first = told.wait_for(after=0)
    assert (first.no_forces, first.contacts, first.deepest_contact) == ('', 0, 0.0)
    commands = peer.talk(Float64MultiArray, robot.topics.commands['joint_position'])
    target = home_of(robot)
    target[0] += 1.5
    commands.publish(Float64MultiArray(data=target.tolist()))
    touched = told.wait_for(lambda status: status.contacts)
    assert touched.deepest_contact > 1e-3
    assert 'post' in touched.contact_between
    assert peer.ask(Trigger, 'sim_node/reset').success
    commands.publish(Float64MultiArray(data=home_of(robot).tolist()))
    again = told.wait_for(lambda status: status.resets == 1, after=0)
    assert (again.contacts, again.contact_between) == (0, '')
