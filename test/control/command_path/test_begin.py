"""A motion begins where the arm is, or at its last command, never at one wrong reading."""

from command_path_arm import CommandPathArm, TICK
from mher_ros.control.safety_monitor import SafetyOptions, Status
import numpy as np
import pytest

POSITIONS = ['pose', 'joint_position', 'joint_trajectory']
GLITCH = 0.045
"""A wrong reading that is no jump yet [rad]."""


def rested_arm(output, **options):
    """Return an arm that has rested for longer than its last command counts."""
    arm = CommandPathArm(output, **options)
    arm.start()
    arm.run(100)
    arm.monitor.drop_goal('a test')
    arm.brake()
    arm.run(150)
    assert not arm.path.is_moving
    return arm


def goal(arm):
    arm.controller.take_goal(arm.now, arm.tool + (-0.05, 0.03, 0.05), 'project')


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('readings', [1, 2])
def test_a_wrong_reading_is_not_where_a_motion_begins(output, readings):
    for joint in range(6):
        arm = rested_arm(output)
        told = arm.positions.copy()
        told[joint] += GLITCH
        goal(arm)
        tool, most = arm.tool.copy(), arm.path.limits.acceleration * TICK
        before = len(arm.commands)
        for _ in range(readings):
            arm.pass_time(TICK)
            arm.send_state(positions=told)
            arm.answer()
        arm.run(40)
        began = [command for _, command in arm.commands[before:]]
        assert began, 'the motion does not begin'
        assert np.linalg.norm(began[0].tool_position - tool) <= most * TICK + 1e-9


@pytest.mark.parametrize('output', POSITIONS)
def test_a_motion_waits_until_an_arm_that_somebody_moves_is_still(output):
    arm = rested_arm(output)
    arm.last_command = None
    goal(arm)
    before = len(arm.commands)
    for _ in range(30):
        arm.pass_time(TICK)
        arm.positions[0] += 1.0 * TICK  # guided by hand at 1 rad/s
        arm.send_state()
        arm.answer()
    assert len(arm.commands) == before
    tool = arm.tool.copy()
    arm.run(30)
    first = arm.commands[before][1]
    assert np.linalg.norm(first.tool_position - tool) < 1e-3


def test_an_arm_that_never_stands_still_loses_its_goal_with_a_reason():
    arm = rested_arm('joint_position', safety=SafetyOptions(resume_within=0.5))
    arm.last_command = None
    goal(arm)
    before = len(arm.commands)
    for tick in range(100):
        arm.pass_time(TICK)
        arm.positions[0] += 0.01 if tick % 4 < 2 else -0.01
        arm.send_state()
        arm.answer()
    assert len(arm.commands) == before
    assert arm.monitor.status is Status.ARM_MOVES
    assert arm.monitor.last_drop == 'arm_moves'
    arm.run(30)
    goal(arm)
    arm.run(10)
    assert len(arm.commands) > before


@pytest.mark.parametrize('output', ['twist', *POSITIONS])
def test_no_motion_begins_before_its_commands_are_received(output):
    arm = CommandPathArm(output)
    arm.path.is_received = False
    arm.start()
    assert arm.run(200) == [None] * 200
    arm.path.is_received = True
    assert any(arm.run(3))
    arm = CommandPathArm(output)
    arm.path.is_received = False
    arm.start()
    arm.run(600)
    assert arm.monitor.status is Status.NO_SUBSCRIBER
    assert arm.monitor.last_drop == 'no_subscriber'


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('rate', [10, 100, 500, 1000])
def test_an_arm_that_drifts_does_not_stand_still_at_any_rate_of_states(output, rate):
    arm = rested_arm(output)
    arm.last_command = None
    arm.positions[0] += 0.1  # somebody else moved it
    goal(arm)
    before, seconds = len(arm.commands), 1.0 / rate
    for _ in range(rate // 2):
        arm.pass_time(seconds)
        arm.positions[0] += 0.06 * seconds
        arm.send_state()
        arm.answer()
    assert len(arm.commands) == before


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('rate', [100, 1000])
def test_a_reading_that_is_wrong_for_a_tenth_of_a_second_is_not_where_a_motion_begins(
    output, rate
):
    arm = CommandPathArm(output)
    arm.rest()
    told, seconds = arm.positions.copy(), 1.0 / rate
    told[1] += GLITCH
    goal(arm)
    tool = arm.tool.copy()
    for _ in range(rate // 10):
        arm.pass_time(seconds)
        arm.send_state(positions=told)
        arm.answer()
    arm.run(50)
    most = arm.path.limits.acceleration * TICK**2
    assert np.linalg.norm(arm.commands[0][1].tool_position - tool) <= most + 1e-9


def test_the_same_joint_state_again_is_no_further_reading():
    arm = CommandPathArm('joint_position')
    goal(arm) if arm.send_state() else None
    stamp = arm.stamp
    for _ in range(40):
        arm.pass_time(TICK)
        arm.send_state(stamp=stamp)
        assert arm.answer() is None


def sagging_arm(output, sag):
    """Return an arm that holds its set-point, but for the sag of a joint [rad]."""
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    arm.monitor.drop_goal('a test')
    while arm.path.is_moving:
        arm.tick()
    arm.run(1)
    arm.is_stuck = True
    arm.positions[1] += sag
    return arm


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('sag', [0.003, 0.02])
@pytest.mark.parametrize('pause', [0.2, 3.0])
def test_an_arm_that_sags_goes_on_from_its_set_point(output, sag, pause):
    arm = sagging_arm(output, sag)
    arm.run(round(pause / TICK))
    last = arm.commands[-1][1]
    goal(arm)
    first = next(command for command in arm.run(5) if command is not None)
    most = arm.path.limits.acceleration * TICK**2
    assert np.linalg.norm(first.tool_position - last.tool_position) <= most + 1e-9


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('what', ['a reading', 'a touch', 'a payload', 'a large sag', 'a hold'])
def test_a_sagging_arm_goes_on_from_its_set_point_whatever_happened(output, what):
    arm = sagging_arm(output, 0.045 if what == 'a large sag' else 0.02)
    last = arm.commands[-1][1]
    arm.run(200)
    rest = arm.positions.copy()
    if what == 'a reading':
        arm.pass_time(TICK)
        arm.send_state(positions=rest + 0.02)
    elif what == 'a touch':
        arm.positions = rest + 0.01
        arm.run(50)
        arm.positions = rest
    elif what == 'a payload':
        arm.positions[1] += 0.008
    elif what == 'a hold':
        arm.pass_time(0.9)
    arm.run(60)
    goal(arm)
    first = next(command for command in arm.run(5) if command is not None)
    most = arm.path.limits.acceleration * TICK**2
    assert np.linalg.norm(first.tool_position - last.tool_position) <= most + 1e-9


def test_a_goal_that_waits_for_joint_states_with_other_stamps_is_dropped_with_a_reason():
    arm = CommandPathArm('joint_position')
    arm.send_state()
    stamp, told = arm.stamp, arm.positions.copy()
    goal(arm)
    for _ in range(700):
        arm.pass_time(TICK)
        arm.send_state(positions=told, stamp=stamp)
        assert arm.answer() is None
    assert arm.monitor.last_drop == 'arm_moves'


def test_stamps_that_are_coarser_than_the_states_hide_no_motion():
    arm = rested_arm('joint_position')
    arm.last_command = None
    arm.positions[0] += 0.1  # somebody else moved it
    goal(arm)
    before = len(arm.commands)
    for number in range(90):
        arm.pass_time(TICK)
        arm.positions[0] += 1.0 * TICK
        arm.send_state(stamp=arm.stamp // 500_000_000 * 500_000_000 + 10**18)
        arm.answer()
        assert len(arm.commands) == before, number


def test_a_motion_whose_commands_are_always_too_late_is_dropped_with_a_reason():
    arm = CommandPathArm('joint_position')
    arm.start()
    for _ in range(600):
        arm.pass_time(TICK)
        arm.send_state()
        if arm.path.tick(arm.now) is not None:
            arm.path.withhold(arm.now)
    assert arm.monitor.last_drop == 'no_command'


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('how', ['deactivated', 'silent', 'without a subscriber'])
def test_the_set_point_that_the_controller_may_not_know_is_forgotten(output, how):
    arm = sagging_arm(output, 0.02)
    last = arm.commands[-1][1]
    arm.run(200)
    if how == 'deactivated':
        arm.path.restart()
    elif how == 'silent':
        arm.pass_time(1.5)
    else:
        arm.path.is_received = False
        arm.run(1)
        arm.path.is_received = True
    arm.run(60)
    goal(arm)
    tool, most = arm.tool.copy(), arm.path.limits.acceleration * TICK**2
    first = next(command for command in arm.run(5) if command is not None)
    assert np.linalg.norm(first.tool_position - last.tool_position) > 0.003
    assert np.linalg.norm(first.tool_position - tool) <= most + 1e-9


def test_a_withheld_first_command_does_not_bring_a_forgotten_set_point_back():
    arm = sagging_arm('joint_position', 0.02)
    arm.run(200)
    arm.path.restart()
    arm.run(60)
    goal(arm)
    arm.pass_time(TICK)
    arm.send_state()
    assert arm.path.tick(arm.now) is not None
    arm.path.withhold(arm.now)
    tool, most = arm.tool.copy(), arm.path.limits.acceleration * TICK**2
    first = next(command for command in arm.run(5) if command is not None)
    assert np.linalg.norm(first.tool_position - tool) <= most + 1e-9


@pytest.mark.parametrize('output', POSITIONS)
def test_an_arm_that_creeps_away_has_left_its_set_point(output):
    arm = sagging_arm(output, 0.0)
    last = arm.commands[-1][1]
    arm.run(200)
    for _ in range(1000):
        arm.positions[0] += 0.003 * TICK
        arm.tick()
    goal(arm)
    tool = arm.tool.copy()
    first = next(command for command in arm.run(5) if command is not None)
    assert np.linalg.norm(first.tool_position - last.tool_position) > 0.01
    assert np.linalg.norm(first.tool_position - tool) < 2e-3


@pytest.mark.parametrize('output', POSITIONS)
def test_within_a_second_a_motion_does_not_begin_elsewhere_than_at_its_set_point(output):
    arm = sagging_arm(output, 0.0)
    before = len(arm.commands)
    arm.positions[0] += 0.1
    arm.run(60)
    goal(arm)
    arm.run(20)
    assert len(arm.commands) == before
    arm.run(60)
    assert len(arm.commands) > before


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('how', ['moved', 'activated', 'driver restarted', 'jumped'])
def test_an_arm_that_somebody_else_moved_begins_where_it_is(output, how):
    arm = sagging_arm(output, 0.0)
    last = arm.commands[-1][1]
    if how == 'jumped':
        arm.positions[0] += 0.5
        arm.run(50)
    elif how == 'driver restarted':
        arm.pass_time(0.5)
        arm.positions[0] += 0.1
    else:
        for _ in range(50):
            arm.pass_time(TICK)
            arm.positions[0] += 0.5 * TICK
            arm.send_state()
        if how == 'activated':
            arm.path.restart()
    arm.run(40)
    goal(arm)
    before, tool = len(arm.commands), arm.tool.copy()
    arm.run(120)
    first = arm.commands[before][1]
    most = arm.path.limits.acceleration * TICK**2
    assert np.linalg.norm(first.tool_position - last.tool_position) > 0.01
    assert np.linalg.norm(first.tool_position - tool) <= most + 1e-9


@pytest.mark.parametrize('output', POSITIONS)
def test_readings_from_before_a_silence_do_not_count(output):
    arm = rested_arm(output, safety=SafetyOptions(recovery_time=0.0))
    arm.last_command = None
    arm.positions[0] += 0.1  # somebody else moved it
    arm.run(40)
    arm.pass_time(0.5)
    arm.positions[:2] += 0.004  # moved in the meantime, by so little that it looks still
    arm.run(2)
    goal(arm)
    tool = arm.tool.copy()
    first = next(command for command in arm.run(40) if command is not None)
    assert np.linalg.norm(first.tool_position - tool) < 2e-4


@pytest.mark.parametrize('output', POSITIONS)
@pytest.mark.parametrize('pause', [0.15, 0.9])
def test_a_motion_soon_after_the_last_begins_at_its_set_point_though_the_arm_is_behind(
    output, pause
):
    arm = CommandPathArm(output)
    arm.start()
    arm.run(30)
    arm.monitor.drop_goal('a test')
    while arm.path.is_moving:
        arm.tick()
    last = arm.commands[-1][1]
    arm.tick()
    arm.is_stuck = True
    arm.positions[:6] -= 0.005
    assert arm.run(round(pause / TICK)) == [None] * round(pause / TICK)
    assert np.linalg.norm(arm.tool - last.tool_position) > 0.005
    goal(arm)
    first = next(command for command in arm.run(5) if command is not None)
    most = arm.path.limits.acceleration * TICK
    assert np.linalg.norm(first.tool_position - last.tool_position) <= most * TICK + 1e-9
    if output != 'pose':
        steps = np.abs(first.joint_positions - last.joint_positions)
        assert (steps <= arm.model.acceleration_limits * TICK**2 + 1e-9).all()


@pytest.mark.parametrize('output', ['joint_position', 'joint_trajectory'])
def test_a_command_that_was_sent_slowly_is_recent_from_when_it_had_left(output):
    arm = CommandPathArm(output, safety=SafetyOptions(state_timeout=2.0))
    arm.start()
    arm.run(30)
    arm.pass_time(TICK)
    arm.send_state()
    command = arm.note(arm.path.tick(arm.now))
    before = arm.now
    arm.pass_time(0.5)  # the process was held while it sent the command
    arm.path.sent(before, arm.now)
    arm.is_stuck = True
    arm.positions[:6] -= 0.01  # the arm is behind its set-point
    for _ in range(10):
        arm.pass_time(0.06)  # now 1.1 s since ``before``, 0.6 s since it left
    arm.send_state()
    following = arm.answer()
    assert following is not None
    most = arm.path.limits.acceleration * TICK
    step = np.linalg.norm(following.tool_position - command.tool_position)
    assert step <= most * TICK + 1e-9
