"""Whatever happens to a moving arm, policy_node tells it to stop once, and then nothing."""

from deployed_policy import DeployedPolicy
from fake_arm import vector
from mher_ros.ros.common.status import ACCEPTED, Level, point_of
import numpy as np
import pytest
from rclpy.time import Time
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.ros

SECOND = 1_000_000_000

WINDOW = 15
"""Commands over which a change of velocity is judged."""


@pytest.fixture(scope='module')
def shared(shared_world, policy):
    """Return a node with its arm that tests take turns with."""
    deployed = DeployedPolicy(shared_world, policy)
    deployed.wait_until_active()
    yield deployed
    deployed.close()


@pytest.fixture
def deployed(shared):
    """Return the node with an arm that is on its way to a goal."""
    shared.arm.spoil, shared.arm.is_silent = None, False  # a test that failed left it so
    shared.arm.wait_for_states(5)
    shared.move()
    shared.first_line = len(shared.node.lines)
    return shared


def recover(deployed, text):
    """Tell good states again, once the node has said what was wrong: once."""
    since = deployed.node.lines[deployed.first_line :]
    assert sum(text in line for line in since) == 1, since
    deployed.arm.spoil, deployed.arm.is_silent = None, False
    deployed.drop_goal()


def test_joint_states_that_stop_coming_stop_the_arm(deployed):
    def fall_silent():
        deployed.arm.is_silent = True

    deployed.expect_one_stop(fall_silent)
    deployed.node.wait_for('joint states are no longer received: no joint state for more than 2 s')
    recover(deployed, 'joint states are no longer received')


@pytest.mark.parametrize('what', ['position', 'velocity'])
@pytest.mark.parametrize('value', [float('nan'), float('inf'), -float('inf')])
def test_a_joint_without_a_number_stops_the_arm(deployed, what, value):
    def spoil(message):
        getattr(message, what)[3] = value

    deployed.expect_one_stop(lambda: setattr(deployed.arm, 'spoil', spoil))
    deployed.node.wait_for(f'joint states cannot be used: a finite {what} of elbow_flex_joint')
    recover(deployed, 'cannot be used')


def lose(message):
    del message.name[3], message.position[3], message.velocity[3]


def rename(message):
    names = list(message.name)
    names[3] = 'elbow'
    message.name = names


def shorten(message):
    del message.velocity[-1]


@pytest.mark.parametrize(
    ('spoil', 'text'),
    [
        (lose, 'lacks elbow_flex_joint'),
        (rename, 'lacks elbow_flex_joint; it has .*, elbow,'),
        (shorten, '7 names but 6 entries of velocity'),
    ],
)
def test_a_state_that_does_not_tell_of_every_joint_stops_the_arm(deployed, spoil, text):
    deployed.expect_one_stop(lambda: setattr(deployed.arm, 'spoil', spoil))
    deployed.node.wait_for(f'cannot be used: .*{text}')
    recover(deployed, 'cannot be used')


def test_a_joint_outside_its_limits_stops_the_arm(deployed):
    def spoil(message):
        message.position[1] = deployed.arm.model.upper[1] + 0.1

    deployed.expect_one_stop(lambda: setattr(deployed.arm, 'spoil', spoil))
    deployed.node.wait_for('a joint is outside its limits: shoulder_lift_joint is at')
    recover(deployed, 'outside its limits')


def test_a_joint_that_jumps_stops_the_arm_until_the_next_goal(deployed):
    def jump():
        deployed.arm.positions = deployed.arm.positions + 1.5 * np.eye(7)[6]

    deployed.expect_one_stop(jump)
    deployed.node.wait_for('the joint positions jumped: wrist_roll_joint')
    deployed.expect_silence()
    recover(deployed, 'positions jumped')


def test_a_clock_that_is_set_back_stops_the_arm_until_the_next_goal(deployed):
    deployed.expect_one_stop(lambda: setattr(deployed.arm, 'shift', -5 * SECOND))
    deployed.node.wait_for('clock of the joint states was set back: by [45]')
    deployed.expect_silence()
    deployed.move()
    deployed.arm.shift = 0
    recover(deployed, 'was set back')


def test_joint_states_of_somebody_else_change_nothing(deployed):
    other = deployed.peer.node.create_publisher(JointState, 'joint_states', 10)
    deployed.go()
    deployed.commands.messages.clear()
    gripper = JointState(name=['finger'], position=[float('nan')], velocity=[0.0])
    while len(deployed.commands.messages) < 30:
        other.publish(gripper)
        deployed.commands.wait_for()
    assert not any('finger' in line for line in deployed.node.lines)
    deployed.wait_until_reached()
    deployed.peer.node.destroy_publisher(other)


def test_caps_hold_on_the_topic(shared):
    shared.commands.messages.clear()
    for _ in range(2):
        shared.go()
        shared.wait_until_reached()
    commands = list(shared.commands.messages)  # more may come
    velocities = np.array([vector(told.twist.linear) for told in commands])
    stamps = [Time.from_msg(told.header.stamp).nanoseconds for told in commands]
    speeds = np.linalg.norm(velocities, axis=1)
    assert 0.2 < speeds.max() <= 0.25
    # A stamp is that of sending, which a busy machine delays: so over several of them.
    times = (np.array(stamps[WINDOW:]) - stamps[:-WINDOW]) / SECOND + 0.02
    changes = np.linalg.norm(velocities[WINDOW:] - velocities[:-WINDOW], axis=1)
    assert (changes <= 1.0 * times).all()
    assert {told.header.frame_id for told in shared.commands.messages} == {'world'}
    assert not any(vector(told.twist.angular).any() for told in shared.commands.messages)


@pytest.mark.parametrize(
    ('goal', 'frame', 'code'),
    [
        ((1.3, 0.75, 0.5), 'camera', 'frame_unknown'),
        ((1.3, 0.75, 2.0), 'world', 'outside_workspace'),
        ((1.3, float('nan'), 0.5), 'world', 'bad_message'),
        ((float('inf'), 0.7, 0.5), 'world', 'bad_message'),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused_and_the_old_one_stays(deployed, goal, frame, code):
    before = deployed.status()
    answered = deployed.send(goal, frame)
    assert (answered.answer, answered.answered_frame) == (code, frame)
    assert (answered.accepted, answered.refused) == (before.accepted, before.refused + 1)
    assert answered.goal == before.goal
    seen = len(deployed.commands.messages)
    deployed.commands.wait_for(lambda message: vector(message.twist.linear).any(), after=seen)


def test_a_stop_outlasts_everything_but_being_cleared(deployed):
    deployed.expect_one_stop(lambda: deployed.trigger('stop'))
    assert deployed.expect_no_goal_is_taken() == 'stopped'
    for transitions in (('deactivate',), ('deactivate', 'cleanup', 'configure')):
        assert all(map(deployed.change, (*transitions, 'activate')))
        deployed.wait_for_status(lambda status: status.is_active and status.stopped)
        assert deployed.expect_no_goal_is_taken() == 'stopped'
    deployed.trigger('clear')
    deployed.commands.messages.clear()
    deployed.wait_for_heartbeats()
    assert not deployed.commands.messages
    deployed.move()


def test_a_node_that_is_configured_anew_begins_where_the_arm_has_come_to_rest(deploy):
    deployed = deploy('joint_position')
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.move()
    for transition in ('deactivate', 'cleanup', 'configure', 'activate'):
        assert deployed.change(transition)
    times = deployed.commands.times
    last, before = times[-1], len(times)
    deployed.wait_for_status(lambda status: status.is_active)
    deployed.peer.wait_until(
        lambda: deployed.send(deployed.far_goal()).answer == ACCEPTED, 'a goal is accepted'
    )
    deployed.peer.wait_until(lambda: len(times) > before, 'a command')
    # The last command is forgotten: a new motion starts where the arm is, and not at once.
    assert times[before] - last > 0.9


def test_a_controller_that_is_gone_ends_the_motion_and_a_new_one_gets_all_commands(deploy):
    deployed = deploy('joint_position')
    deployed.wait_until_active()
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    deployed.move()
    deployed.arm.leave()
    deployed.wait_for_status(lambda status: status.last_drop == 'no_subscriber')
    deployed.wait_for_status(lambda status: status.state == 'no_goal')
    before = len(deployed.commands.messages)
    goal = deployed.go()
    deployed.wait_for_heartbeats(5)
    assert len(deployed.commands.messages) == before
    deployed.arm.meet()
    deployed.peer.wait_until(lambda: len(deployed.commands.messages) > before, 'a command')
    first = np.array(deployed.commands.messages[before].data)
    # The new controller is asked for no leap, but for a motion from rest.
    assert np.abs(first - deployed.arm.positions[: len(first)]).max() < 0.01
    deployed.wait_for_status(lambda status: status.reached and status.goal == point_of(goal))


def test_an_arm_that_does_not_follow_is_stopped(deployed):
    def stick():
        deployed.arm.is_stuck = True

    deployed.expect_one_stop(stick)
    deployed.node.wait_for('the arm does not follow its commands: ')
    deployed.arm.is_stuck = False
    recover(deployed, 'does not follow')


def test_the_status_says_what_the_arm_does_and_why(shared):
    shared.trigger('stop')
    status = shared.wait_for_status(lambda status: status.state == 'stopped')
    assert (status.stopped, status.level, status.goal) == (True, Level.WARN, None)
    shared.trigger('clear')
    shared.wait_for_status(lambda status: not status.stopped and status.state == 'no_goal')
    goal = shared.go()
    status = shared.wait_for_status(lambda status: status.state == 'running' and status.moving)
    assert (status.stopped, status.level, status.reached) == (False, Level.OK, False)
    assert (status.frame, status.output, status.speed_cap) == ('world', 'twist', 0.25)
    assert status.controller == 'policy'
    assert status.goal == tuple(goal)
    assert status.distance > status.threshold > 0.0
    (low, high), (least, most) = np.array(status.workspace), np.array(status.box)
    assert ((least <= low) & (low < goal) & (goal < high) & (high <= most)).all()
    shared.statuses.wait_for(lambda told: told.distance and told.distance < status.distance)
    shared.trigger('stop')
    status = shared.wait_for_status(lambda status: status.goal is None)
    assert (status.last_drop, status.distance, status.reached) == ('stopped', None, False)
    shared.trigger('clear')


def test_diagnostics_tell_the_same_to_people(shared):
    shared.trigger('stop')
    figures = shared.peer.figures('policy_node', lambda told: told['stopped'] == 'true')
    assert figures['level'] == b'\x01'
    assert '~/stop was called' in figures['message']
    shared.trigger('clear')
    shared.go()
    figures = shared.peer.figures('policy_node', lambda told: told['state'] == 'running')
    assert figures['level'] == b'\x00'
    assert figures['output'] == 'twist'
    assert figures['listeners'] == '1'
    assert figures['goal'].startswith('[1.')
