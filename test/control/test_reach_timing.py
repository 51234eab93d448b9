"""The policy keeps its own time, whatever the rate of the joint states."""

from led_arm import interface_of, LedArm, TICK
from mher_ros.control.safety import SafetyOptions
import numpy as np
import pytest

PERIOD = 0.04
"""Of fetch_reach [s]."""


@pytest.mark.parametrize('rate', [100.0, 125.0, 500.0])
@pytest.mark.parametrize('jitter', [0.0, 0.4])
def test_the_policy_is_asked_at_its_own_period(rate, jitter):
    random = np.random.default_rng(5)
    arm = LedArm('twist', command_rate=rate)
    arm.start()
    while arm.now < 104.0:
        arm.tick((1.0 + jitter * random.uniform(-1.0, 1.0)) / rate)
    gaps = np.diff(arm.asked)
    assert np.mean(gaps) == pytest.approx(PERIOD, rel=0.01)
    assert np.abs(gaps - PERIOD).max() <= (1.0 + 2.0 * jitter) / rate + 1e-9
    assert arm.reach.late == 0


def test_between_two_actions_every_state_is_answered_with_a_smooth_motion():
    arm = LedArm('twist', command_rate=500.0)
    arm.start()
    commands = arm.run(500, 0.002)
    velocities = np.array([command.tool_velocity for command in commands])
    steps = np.linalg.norm(np.diff(velocities, axis=0), axis=1)
    assert steps.max() <= arm.reach.limits.acceleration * 0.002 + 1e-9
    assert len(arm.asked) < 30


@pytest.mark.parametrize('output', ['twist', 'pose', 'joint_position'])
def test_what_a_late_tick_missed_is_not_made_up_for(output):
    arm = LedArm(output, safety=SafetyOptions(state_timeout=2.0))
    arm.start()
    arm.run(20)
    before, asked = arm.told, len(arm.asked)
    arm.is_stuck = True
    command = arm.tick(0.9)
    arm.is_stuck = False
    limits = arm.reach.limits
    assert arm.reach.late == 1
    assert len(arm.asked) == asked + 1
    way = np.linalg.norm(command.tool_position - before.tool_position)
    assert way <= limits.speed * limits.longest_tick + 0.01
    change = np.linalg.norm(command.tool_velocity - before.tool_velocity)
    assert change <= limits.acceleration * limits.longest_tick + 1e-9
    arm.run(8)
    assert len(arm.asked) == asked + 3  # every 0.04 s again
    assert arm.reach.late == 1


def test_two_ticks_at_one_time_are_one():
    arm = LedArm('joint_position')
    arm.start()
    assert arm.tick() is not None
    assert arm.answer() is None
    assert not arm.tick().is_stop


def test_a_policy_whose_target_moves_leads_the_tool_only_where_it_knows_its_way():
    interface = interface_of('sawyer_reach')
    assert interface.action_meaning == 'target_displacement'
    outward = np.array((1, 1, 1, 0)[: len(interface.action)], np.float32)
    for output in ('twist', 'joint_position'):
        arm = LedArm(output, 'sawyer', policy=lambda *_: outward)
        arm.start(arm.workspace.high)
        arm.run(300)
        assert (arm.told.tool_position <= arm.workspace.high + 2e-3).all()
        assert (arm.workspace.box_high > arm.workspace.high + 0.04).all()


@pytest.mark.parametrize('output', ['twist', 'joint_position'])
def test_a_policy_that_only_wants_out_is_kept_in_the_box(output):
    arm = LedArm(output, policy=lambda *_: np.array((1, 1, 1, 0), np.float32))
    # Only braking for the goal is in the way of a policy that goes past it.
    arm.start(arm.workspace.low)
    arm.run(600)
    assert (arm.tool <= arm.workspace.box_high + 2e-3).all()
    assert arm.tool[2] > arm.workspace.box_high[2] - 0.02


def test_a_state_that_came_late_does_not_move_the_arm_back():
    arm = LedArm('joint_velocity')
    arm.start()
    arm.run(10)
    tool = arm.reach.tool.copy()
    arm.tell_state(np.array(arm.positions) + 0.01, stamp=arm.stamp - 1)
    np.testing.assert_array_equal(arm.reach.tool, tool)
    assert not arm.tick(TICK).is_stop


@pytest.mark.parametrize('output', ['twist', 'pose', 'joint_trajectory'])
def test_a_command_says_how_long_ago_the_one_before_was(output):
    arm = LedArm(output)
    arm.start()
    assert arm.tick().dt == pytest.approx(TICK)
    for seconds in (0.01, 0.05, 0.013, 0.002, 0.09):
        assert arm.tick(seconds).dt == pytest.approx(seconds)


def test_a_command_reckons_with_states_that_were_not_answered():
    arm = LedArm('joint_trajectory')
    arm.start()
    arm.run(5)
    arm.pass_time(TICK)
    assert arm.tell_state()
    assert arm.tick().dt == pytest.approx(2 * TICK)


def test_a_state_that_is_passed_over_is_not_to_be_answered():
    arm = LedArm('twist')
    arm.start()
    arm.run(5)
    arm.pass_time(TICK)
    assert arm.tell_state()
    assert not arm.tell_state(stamp=arm.stamp - 1)  # a late one
    assert not arm.tell_state(arm.positions * np.nan)
    arm.run(30)


def test_a_jump_of_a_moving_arm_is_not_to_be_answered_but_stops_it():
    arm = LedArm('joint_position')
    arm.start()
    arm.run(5)
    arm.pass_time(TICK)
    assert not arm.tell_state(arm.positions + 0.5)
    stop = arm.watch()
    assert stop.is_stop
    np.testing.assert_allclose(stop.joint_positions, arm.positions, atol=0.05)
    arm.pass_time(TICK)
    assert arm.tell_state()


@pytest.mark.parametrize('output', ['joint_position', 'joint_velocity'])
def test_an_arm_far_from_home_sets_out_gently(output):
    arm = LedArm(output)
    arm.positions[[0, 2, 4]] += (0.2, -0.3, 0.5)
    arm.start(arm.tool)
    first = arm.tick()
    assert np.linalg.norm(arm.reach.goal - arm.tool) < 1e-9  # nothing is to be done
    assert np.abs(first.joint_velocities).max() < 0.05
    for command in arm.run(100):
        assert np.abs(command.joint_velocities).max() < 0.05
