"""The policy keeps its own time, whatever the rate of the joint states."""

from command_path_arm import CommandPathArm, interface_of, TICK
from mher_ros.control.safety_monitor import SafetyOptions, Status
import numpy as np
import pytest

PERIOD = 0.04
"""Of fetch_reach [s]."""


@pytest.mark.parametrize('rate', [100.0, 125.0, 500.0])
@pytest.mark.parametrize('jitter', [0.0, 0.4])
def test_the_policy_is_asked_at_its_own_period(rate, jitter):
    random = np.random.default_rng(5)
    arm = CommandPathArm('twist', command_rate=rate)
    arm.start()
    while arm.now < 104.0:
        arm.tick((1.0 + jitter * random.uniform(-1.0, 1.0)) / rate)
    gaps = np.diff(arm.asked)
    assert np.mean(gaps) == pytest.approx(PERIOD, rel=0.01)
    assert np.abs(gaps - PERIOD).max() <= (1.0 + 2.0 * jitter) / rate + 1e-9
    assert arm.controller.late == 0


def test_between_two_actions_every_state_is_answered_with_a_smooth_motion():
    arm = CommandPathArm('twist', command_rate=500.0)
    arm.start()
    commands = arm.run(500, 0.002)
    velocities = np.array([command.tool_velocity for command in commands])
    steps = np.linalg.norm(np.diff(velocities, axis=0), axis=1)
    assert steps.max() <= arm.path.limits.acceleration * 0.002 + 1e-9
    assert len(arm.asked) < 30


@pytest.mark.parametrize('delay', [0.03, 0.09, 0.9])
@pytest.mark.parametrize('output', ['pose', 'joint_position', 'joint_trajectory'])
def test_a_late_command_asks_for_no_more_than_one_period_of_motion(output, delay):
    arm = CommandPathArm(output, safety=SafetyOptions(state_timeout=2.0))
    arm.start()
    arm.run(30)
    before, asked, limits = arm.last_command, len(arm.asked), arm.path.limits
    assert np.linalg.norm(before.tool_velocity) > 0.15
    command = arm.tick(delay)
    displacement = np.linalg.norm(command.tool_position - before.tool_position)
    assert displacement <= limits.speed * TICK + 1e-9
    if delay > limits.longest_tick:  # the arm has come to rest meanwhile
        assert np.linalg.norm(command.tool_velocity) <= limits.acceleration * TICK + 1e-9
    assert len(arm.asked) <= asked + 1
    arm.run(8)
    assert len(arm.asked) <= asked + 4  # every 0.04 s again


@pytest.mark.parametrize('output', ['joint_position', 'twist'])
@pytest.mark.parametrize('wait, outdated', [(0.003, False), (0.045, True)])
def test_a_command_for_a_moving_arm_is_outdated_once_the_arm_rests(output, wait, outdated):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    arm.pass_time(0.095)
    arm.send_state()
    command = arm.path.tick(arm.now)
    assert np.linalg.norm(command.tool_velocity) > 0.15
    assert arm.path.is_outdated(arm.now + wait) == outdated
    arm.path.withhold(arm.now)
    arm.pass_time(wait)
    assert np.linalg.norm(arm.tick().tool_velocity) <= arm.path.limits.acceleration * TICK + 1e-9


def test_commands_are_no_closer_than_a_tenth_less_than_a_period():
    arm = CommandPathArm('pose')
    arm.start()
    random = np.random.default_rng(2)
    while arm.now < 103.0:
        arm.tick(random.uniform(0.0005, 0.012))
    times = np.array([time for time, _ in arm.commands])
    assert np.diff(times).min() >= 0.9 * TICK - 1e-9
    assert (times[20:] - times[:-20]).min() >= 19.5 * TICK  # nor more in the long run
    assert (times[20:] - times[:-20]).mean() < 28 * TICK


@pytest.mark.parametrize('rate', [100.0, 500.0])
def test_every_state_is_answered_although_making_and_sending_a_command_take_time(rate):
    period = 1.0 / rate
    making, sending = 0.0005, 0.0002
    arm = CommandPathArm('joint_position', command_rate=rate)
    arm.start()
    left, next_state = [], arm.now + period
    while len(left) < 300:
        arm.pass_time(max(1e-6, min(next_state, arm.path.due) - arm.now))
        if arm.now >= next_state:
            next_state += period
            arm.send_state()
        command = arm.note(arm.path.tick(arm.now))
        if command is not None:
            arm.pass_time(max(making, arm.path.leaves_at - arm.now))
            left.append(arm.now)
            arm.pass_time(sending)
            arm.path.sent(left[-1], arm.now)
        arm.path.plan(arm.now)
    gaps = np.diff(left)
    assert np.mean(gaps) == pytest.approx(period, rel=0.01)
    assert gaps.min() >= 0.9 * period - 1e-9


def test_states_that_come_rarely_are_not_waited_for():
    arm = CommandPathArm('pose')
    arm.start()
    for tick in range(400):
        arm.pass_time(TICK / 4)
        if tick % 16 == 0:
            arm.send_state()
        arm.answer()
    assert len(arm.commands) > 90


def test_without_states_the_arm_slows_down_and_goes_on_when_they_are_back():
    arm = CommandPathArm('joint_position')
    arm.start(arm.workspace.low)
    arm.run(30)
    speed = np.linalg.norm(arm.last_command.tool_velocity)
    for _ in range(18):
        arm.pass_time(TICK)
        arm.answer()
    assert 0.0 < np.linalg.norm(arm.last_command.tool_velocity) < speed - 0.015
    assert arm.monitor.status is Status.RUNNING
    arm.run(20)
    assert np.linalg.norm(arm.last_command.tool_velocity) > speed - 0.03


def test_two_ticks_at_one_time_are_one():
    arm = CommandPathArm('joint_position')
    arm.start()
    assert arm.tick() is not None
    assert arm.answer() is None
    assert not arm.tick().is_stop


def test_a_policy_whose_target_moves_leads_the_tool_only_where_it_knows_its_way():
    interface = interface_of('sawyer_reach')
    assert interface.action_meaning == 'target_displacement'
    outward = np.array((1, 1, 1, 0)[: len(interface.action)], np.float32)
    for output in ('twist', 'joint_position'):
        arm = CommandPathArm(output, 'sawyer', policy=lambda *_: outward)
        arm.start(arm.workspace.high)
        arm.run(300)
        assert (arm.last_command.tool_position <= arm.workspace.high + 2e-3).all()
        assert (arm.workspace.box_high > arm.workspace.high + 0.04).all()


@pytest.mark.parametrize('output', ['twist', 'joint_position'])
def test_a_policy_that_only_wants_out_is_kept_in_the_box(output):
    arm = CommandPathArm(output, policy=lambda *_: np.array((1, 1, 1, 0), np.float32))
    # Only braking for the goal is in the way of a policy that goes past it.
    arm.start(arm.workspace.low)
    arm.run(600)
    assert (arm.tool <= arm.workspace.box_high + 2e-3).all()
    assert arm.tool[2] > arm.workspace.box_high[2] - 0.02


def test_a_state_that_came_late_does_not_move_the_arm_back():
    arm = CommandPathArm('joint_velocity')
    arm.start()
    arm.run(10)
    tool = arm.path.tool.copy()
    arm.send_state(np.array(arm.positions) + 0.01, stamp=arm.stamp - 1)
    np.testing.assert_array_equal(arm.path.tool, tool)
    assert not arm.tick(TICK).is_stop


def test_a_state_that_is_passed_over_is_not_to_be_answered():
    arm = CommandPathArm('twist')
    arm.start()
    arm.run(5)
    arm.pass_time(TICK)
    assert arm.send_state()
    assert not arm.send_state(stamp=arm.stamp - 1)  # a late one
    assert not arm.send_state(arm.positions * np.nan)
    arm.run(30)


def test_a_jump_of_a_moving_arm_is_not_to_be_answered_but_stops_it():
    arm = CommandPathArm('joint_position')
    arm.start()
    arm.run(5)
    arm.pass_time(TICK)
    assert not arm.send_state(arm.positions + 0.5)
    stop = arm.brake()
    assert stop.is_stop
    np.testing.assert_allclose(stop.joint_positions, arm.positions, atol=0.01)
    arm.pass_time(TICK)
    assert arm.send_state()


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
def test_an_arm_far_from_home_sets_out_gently(output):
    arm = CommandPathArm(output)
    arm.positions[[0, 2, 4]] += (0.2, -0.3, 0.5)
    arm.start(arm.tool)
    first = arm.tick()
    assert np.linalg.norm(arm.controller.goal - arm.tool) < 1e-9  # nothing is to be done
    assert np.abs(first.joint_velocities).max() < 0.05
    for command in arm.run(100):
        assert np.abs(command.joint_velocities).max() < 0.05


def test_nobody_waits_for_a_command_that_is_not_due():
    arm = CommandPathArm('joint_position')
    arm.send_state()
    assert arm.answer() is None
    assert arm.path.due == float('inf')
    arm.start()
    assert arm.path.due <= arm.now
    assert arm.tick() is not None
    assert arm.now < arm.path.due < arm.now + 2 * TICK
    for _ in range(200):  # no states: it comes to rest, and looks again from time to time
        arm.pass_time(TICK)
        arm.answer()
        assert arm.path.due > arm.now


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'twist'])
def test_a_command_that_was_held_up_is_taken_back(output):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    last = arm.last_command
    arm.pass_time(TICK)
    arm.send_state()
    assert arm.path.tick(arm.now) is not None
    arm.path.withhold(arm.now)
    arm.pass_time(0.15)
    arm.send_state()
    command = arm.answer()
    step = np.linalg.norm(command.tool_position - last.tool_position)
    if output == 'twist':
        assert starts_from_rest(arm, command)
    else:
        assert step <= arm.path.limits.acceleration * TICK**2 + 1e-9


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'twist'])
def test_a_stop_before_a_command_has_left_takes_its_place(output):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    last = arm.last_command
    arm.pass_time(TICK)
    arm.send_state()
    assert arm.path.tick(arm.now) is not None
    arm.monitor.stop('a test')
    arm.path.withhold(arm.now)
    arm.pass_time(0.5 * TICK)  # the command is not delayed by a whole period
    command = arm.answer()
    assert np.linalg.norm(command.tool_velocity) < np.linalg.norm(last.tool_velocity)


@pytest.mark.parametrize('output', ['pose', 'joint_position'])
def test_rare_commands_are_no_pauses(output):
    arm = CommandPathArm(output, command_rate=9.0)
    arm.start(arm.workspace.low)
    commands = [command for command in arm.run(150, 0.03) if command is not None]
    velocities = np.array([command.tool_velocity for command in commands])
    assert np.linalg.norm(velocities, axis=1).max() > 0.15
    changes = np.linalg.norm(np.diff(velocities, axis=0), axis=1)
    assert changes.max() <= arm.path.limits.acceleration / 9.0 + 1e-9


def test_a_pause_is_counted_from_before_a_command_left():
    arm = CommandPathArm('joint_position')
    arm.start()
    arm.run(30)
    last = arm.last_command
    before = arm.now
    arm.pass_time(0.5)
    arm.path.sent(before, arm.now)  # the process was held between sending and saying so
    arm.pass_time(TICK)
    arm.send_state()
    command = arm.answer()
    step = np.linalg.norm(command.tool_position - last.tool_position)
    assert step <= arm.path.limits.acceleration * TICK**2 + 1e-9


def starts_from_rest(arm, command):
    speed = np.linalg.norm(command.tool_velocity)
    return speed <= arm.path.limits.acceleration * TICK + 1e-9


@pytest.mark.parametrize('output', ['pose', 'joint_position', 'joint_trajectory'])
def test_after_a_long_hold_an_arm_is_not_sent_back_to_where_it_was(output):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    arm.last_command = None  # its controller was switched off, and somebody moved it
    arm.pass_time(5.0)
    arm.positions[0] += 0.5
    arm.send_state()
    assert arm.answer() is None
    assert not arm.path.is_moving
    arm.run(50)
    arm.start()
    first = arm.tick()
    assert np.linalg.norm(first.tool_position - arm.tool) < 1e-3


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
@pytest.mark.parametrize('held', [0.15, 0.5])
def test_velocities_start_from_rest_after_a_pause(output, held):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    assert np.linalg.norm(arm.last_command.tool_velocity) > 0.1
    arm.last_command = None  # its driver has stopped it
    arm.pass_time(held)
    arm.send_state()
    assert starts_from_rest(arm, arm.answer())


@pytest.mark.parametrize('output', ['twist', 'joint_velocity'])
def test_a_long_hold_ends_with_no_velocity(output):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    arm.last_command = None
    arm.pass_time(30.0)
    arm.send_state()
    stop = arm.answer()  # to a driver without a timeout
    assert stop.is_stop
    assert not stop.tool_velocity.any()
    assert arm.run(50) == [None] * 50
