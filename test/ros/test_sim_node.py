"""The simulated arm, seen from outside."""

import signal
import time
import xml.etree.ElementTree as ElementTree

from geometry_msgs.msg import PoseStamped, TwistStamped
from mher_ros.control.kinematics import ToolKinematics
from mher_ros.ros.wire import SECOND
from mher_ros.simulation.arms import ARMS
from mher_ros.tasks import make
import numpy as np
import pytest
from rcl_interfaces.srv import SetParameters
from rclpy.node import NodeNameNonExistentError
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

pytestmark = pytest.mark.ros

PERIOD = SECOND // 10
"""Of point2d_large [ns]."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOOLS = {'fetch_reach': {'site': 'robot0:grip'}, 'sawyer_reach': {'body': 'hand'}}


def stamp_of(message):
    return Time.from_msg(message.header.stamp).nanoseconds


class Arm:
    """A sim_node of its own domain, and what a person in that domain sees and does."""

    def __init__(self, world, command=(TwistStamped, 'twist_command'), **parameters):
        self.process = world.sim_node(**parameters)
        self.peer = world.peer()
        self.states = self.peer.listen(JointState, 'joint_states')
        self._commands = self.peer.talk(*command)
        if parameters.get('stepping') != 'realtime':
            self.send((0.0, 0.0), 0)  # answered with the latest state

    def latest(self):
        """Return the newest state, as stamp [ns] and position."""
        if not self.states.messages:
            self.states.wait_for(after=0)
        message = self.states.messages[-1]
        return stamp_of(message), np.array(message.position)

    def send(self, velocity, stamp, frame='square', turn=0.0):
        message = TwistStamped()
        message.header.stamp = Time(nanoseconds=stamp).to_msg()
        message.header.frame_id = frame
        linear = message.twist.linear
        linear.x, linear.y, linear.z = map(float, (*velocity, 0.0)[:3])
        message.twist.angular.z = turn
        self._commands.publish(message)

    def publish(self, message):
        self._commands.publish(message)

    def step(self, velocity):
        """Answer the latest state and return the next one."""
        stamp, _ = self.latest()
        self.send(velocity, stamp)
        self.states.wait_for(lambda state: stamp_of(state) == stamp + PERIOD, after=-1)
        return self.latest()

    def reset(self):
        """Return what it says, once the first state is here."""
        said = self.peer.ask(Trigger, 'sim_node/reset')
        assert said.success
        first = int(said.message.split()[-1])
        self.states.wait_for(lambda state: stamp_of(state) == first, after=0)
        return said.message

    def figures(self, **expected):
        """Return the figures of /diagnostics once those named are as expected."""
        names = {key.replace('_', ' '): str(value) for key, value in expected.items()}
        return self.peer.figures(
            'sim_node', lambda told: all(told[key] == names[key] for key in names)
        )


# In lockstep


@pytest.fixture(scope='module')
def point(shared_world):
    """Return the point, which waits for commands."""
    return Arm(shared_world)


@pytest.fixture(scope='module')
def quiet(shared_worlds):
    """Return a point that tells its state by itself every ten seconds only."""
    return Arm(shared_worlds(), view_rate=0.1)


def test_topics_and_services_are_those_of_the_design(point):
    node = point.peer.node

    def complete():
        try:
            sent = dict(node.get_publisher_names_and_types_by_node('sim_node', '/'))
            taken = dict(node.get_subscriber_names_and_types_by_node('sim_node', '/'))
            answered = dict(node.get_service_names_and_types_by_node('sim_node', '/'))
        except NodeNameNonExistentError:
            return False
        return (
            {
                '/joint_states': ['sensor_msgs/msg/JointState'],
                '/tool_pose': ['geometry_msgs/msg/PoseStamped'],
                '/clock': ['rosgraph_msgs/msg/Clock'],
                '/robot_markers': ['visualization_msgs/msg/MarkerArray'],
                '/robot_description': ['std_msgs/msg/String'],
                '/diagnostics': ['diagnostic_msgs/msg/DiagnosticArray'],
            }.items()
            <= sent.items()
            and {'/twist_command': ['geometry_msgs/msg/TwistStamped']}.items() <= taken.items()
            and {
                '/sim_node/reset': ['std_srvs/srv/Trigger'],
                '/sim_node/pause': ['std_srvs/srv/SetBool'],
            }.items()
            <= answered.items()
        )

    point.peer.wait_until(complete, 'all topics and services are there', 10.0)


def test_a_command_that_answers_the_latest_state_does_one_step(point):
    point.reset()
    before, start = point.latest()
    after, end = point.step((3.0, -2.0))
    assert after == before + PERIOD
    assert np.linalg.norm(end - start) > 0.1  # towards one wall or the other
    np.testing.assert_allclose(end, np.clip(start + (0.3, -0.2), -5.0, 5.0), atol=1e-7)


@pytest.mark.parametrize(
    'stamp_from',
    [
        lambda latest: latest - PERIOD,
        lambda latest: latest - 7 * PERIOD,
        lambda latest: latest + PERIOD,
        lambda latest: latest - 1,
        lambda latest: 0,
    ],
    ids=['repeated', 'late', 'early', 'foreign', 'none'],
)
def test_any_other_command_changes_nothing_and_is_answered_with_the_latest_state(
    quiet, stamp_from
):
    quiet.step((1.0, 1.0))
    count = len(quiet.states.messages)
    latest, place = quiet.latest()
    quiet.send((5.0, 5.0), stamp_from(latest))
    answer = quiet.states.wait_for(after=count, patience=5.0)
    assert stamp_of(answer) == latest
    np.testing.assert_array_equal(answer.position, place)
    after, end = quiet.step((0.0, 0.0))
    assert after == latest + PERIOD
    np.testing.assert_array_equal(end, place)


def test_an_arm_that_waits_tells_its_state_again_and_again(point):
    stamp, _ = point.latest()
    for _ in range(3):
        assert stamp_of(point.states.wait_for()) == stamp


def test_every_state_has_a_stamp_of_its_own_through_resets_too(point):
    rng = np.random.default_rng(0)
    told = {}
    begin, _ = point.latest()
    for _ in range(3):
        point.reset()
        for velocity in rng.uniform(-10.0, 10.0, (10, 2)):
            point.step(velocity)
    for message in point.states.messages:
        told.setdefault(stamp_of(message), set()).add(tuple(message.position))
    assert all(len(places) == 1 for places in told.values())
    end, _ = point.latest()
    # A reset takes two periods, lest its state be taken for the answer to a command.
    assert end - begin == 3 * (2 + 10) * PERIOD
    assert set(range(begin, end + 1, PERIOD)) - told.keys() == {
        begin + (12 * episode + 1) * PERIOD for episode in range(3)
    }


def test_a_paused_arm_does_nothing_until_it_goes_on(point):
    said = point.peer.ask(SetBool, 'sim_node/pause', data=True)
    assert (said.success, said.message) == (True, 'paused')
    stamp, place = point.latest()
    point.send((1.0, 1.0), stamp)
    assert point.figures(message='paused')['level'] == b'\0'
    assert point.latest()[0] == stamp
    said = point.peer.ask(SetBool, 'sim_node/pause', data=False)
    assert (said.success, said.message) == (True, 'going on')
    assert point.step((0.0, 0.0))[0] == stamp + PERIOD
    np.testing.assert_array_equal(point.latest()[1], place)


def test_a_reset_starts_where_the_seed_says(point):
    client = point.peer.client(SetParameters, 'sim_node/set_parameters')
    task = make('point2d_large')
    for seed in (5, 6, 5):
        seeds = [Parameter('seed', value=seed).to_parameter_msg()]
        answer, _ = point.peer.call(client, SetParameters.Request(parameters=seeds))
        assert answer.results[0].successful
        said = f'point2d_large, lockstep, twist, seed {seed}, first state '
        assert point.reset().startswith(said)
        task.reset(seed=seed)
        np.testing.assert_array_equal(point.latest()[1], task.joint_state()[0])


def test_a_reset_without_a_seed_starts_anywhere(quiet):
    starts = set()
    for _ in range(3):
        assert 'seed -1, ' in quiet.reset()
        starts.add(tuple(quiet.latest()[1]))
    assert len(starts) == 3


def test_commands_that_make_no_sense_are_refused_and_counted(quiet):
    latest, place = quiet.latest()
    refused = int(quiet.figures()['messages refused'])
    for bad in (
        {'velocity': (np.nan, 0.0)},
        {'velocity': (1.0, 0.0), 'frame': 'world'},
        {'velocity': (1.0, 0.0), 'turn': 0.1},
        {'velocity': (1.0, 0.0, 1.0)},
    ):
        quiet.send(stamp=latest, **bad)
        refused += 1
        quiet.figures(messages_refused=refused)
    assert quiet.latest()[0] == latest
    quiet.process.wait_for(
        r'refused a message on /twist_command: a twist of finite numbers is expected, got \[nan'
    )
    quiet.step((0.0, 0.0))
    np.testing.assert_array_equal(quiet.latest()[1], place)


def test_the_clock_is_that_of_the_states(point):
    clock = point.peer.listen(Clock, '/clock')
    point.step((0.0, 0.0))
    stamp, _ = point.latest()
    clock.wait_for(lambda message: Time.from_msg(message.clock).nanoseconds == stamp, after=0)


def test_a_step_is_counted(quiet):
    steps = int(quiet.figures()['steps'])
    for _ in range(3):
        quiet.step((0.0, 0.0))
    quiet.figures(steps=steps + 3)


# In real time


@pytest.fixture(scope='module')
def free(shared_worlds):
    """Return a point whose time passes by itself."""
    return Arm(shared_worlds(), stepping='realtime')


def test_time_passes_without_commands(free):
    free.states.wait_for(lambda _: len(free.states.messages) >= 4, after=0)
    stamps = [stamp_of(message) for message in free.states.messages]
    assert set(np.diff(stamps)) == {PERIOD}


def test_an_arm_holds_still_when_commands_stay_away(free):
    count, (_, start) = len(free.states.messages), free.latest()
    free.send((-0.1 * np.sign(start[0]), 0.0), 0)
    way = [start[0]]

    def stands_again(state):
        way.append(state.position[0])
        return way[-2] == way[-1] != start[0]

    free.states.wait_for(stands_again, after=count)
    moves = len(set(way)) - 1
    assert 2 <= moves <= 4  # command_timeout is two periods
    assert abs(way[-1] - start[0]) == pytest.approx(0.01 * moves)


def test_time_stands_still_while_paused(free):
    free.peer.ask(SetBool, 'sim_node/pause', data=True)
    stamp = stamp_of(free.states.wait_for())
    assert [stamp_of(free.states.wait_for()) for _ in range(3)] == [stamp] * 3
    free.peer.ask(SetBool, 'sim_node/pause', data=False)
    free.states.wait_for(lambda state: stamp_of(state) == stamp + PERIOD, after=0)


def test_lateness_is_told(free):
    figures = free.figures()
    assert 0.0 <= float(figures['worst lateness [s]']) < 1.0
    assert float(figures['time given up [s]']) == 0.0


def rate_of(states, seconds):
    """Return the simulated seconds in a second of this process, over so many of the former."""
    begin = stamp_of(states.wait_for(lambda _: len(states.messages) > 20, after=0))
    states.wait_for(lambda state: stamp_of(state) - begin >= seconds * SECOND)
    stamps = np.array([stamp_of(message) for message in states.messages[20:]]) - begin
    times = np.array(states.times[20 : 20 + len(stamps)])
    return np.polyfit(times - times[0], stamps / SECOND, 1)[0]


@pytest.mark.slow
def test_the_rate_is_held_to_one_per_cent(world):
    world.sim_node('fetch_reach', 'realtime')
    states = world.peer().listen(JointState, 'joint_states')
    assert rate_of(states, 10.0) == pytest.approx(1.0, rel=0.01)


def test_time_passes_faster_by_the_factor(world):
    world.sim_node(stepping='realtime', rate_factor=20.0)
    states = world.peer().listen(JointState, 'joint_states')
    assert rate_of(states, 20.0) == pytest.approx(20.0, rel=0.2)


# With drives on its joints


@pytest.fixture(scope='module', params=ARMS)
def joints(request, shared_worlds):
    """Return (task, an arm that takes joint commands), faster than life."""
    task = request.param
    commands = (JointTrajectory, 'joint_trajectory')
    arm = Arm(
        shared_worlds(),
        commands,
        task=task,
        stepping='realtime',
        interface='joint',
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
    arm.states.wait_for(lambda _: time.monotonic() - began > 1.0)
    arm.peer.ask(SetBool, 'sim_node/pause', data=False)
    reached = wait_until_there(arm, start + 0.3)
    assert stamp_of(reached) - held > 2.0 * SECOND
    assert stamp_of(reached) - stamp_of(moved) < 4.0 * SECOND


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
        ((), trajectory(arm.names)),
    ):
        vectors.publish(Float64MultiArray(data=list(map(float, vector))))
        arm.publish(path)
        refused += 2
        arm.figures(messages_refused=refused)
    arm.process.wait_for('refused a message on /commands: 7 finite positions are expected, got')
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


# As a process


def test_it_ends_in_good_order_when_terminated(world):
    sim = world.sim_node(stepping='realtime')
    sim.signal(signal.SIGTERM)
    assert sim.end(5.0) == 0


def test_wrong_parameters_end_it_with_a_sentence(world):
    cases = (
        ({'task': 'fetch'}, "task takes one of .*fetch_reach.*; got 'fetch'"),
        ({'viewr': True}, "sim_node has no parameter 'viewr'; it has command_timeout, interface"),
        (
            {'task': 'reacher', 'interface': 'twist'},
            "interface takes auto or joint with task reacher, got 'twist'",
        ),
    )
    for sim, sentence in [(world.node('sim_node', **given), text) for given, text in cases]:
        sim.wait_for(f'^sim_node: {sentence}')
        assert sim.end() == 2
