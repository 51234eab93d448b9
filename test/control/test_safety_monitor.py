"""When commands may leave for the arm, and when not."""

import math

from hypothesis import given
from hypothesis import strategies as st
from mher_ros.control.safety_monitor import SafetyMonitor, SafetyOptions, Status
from mher_ros.control.stop_latch import StopLatch
from mher_ros.options import OptionError
from mher_ros.robots.workspace import GoalError
import numpy as np
import pytest

NAN = float('nan')
SECOND = 1_000_000_000
PERIOD = 0.01
OPTIONS = SafetyOptions()


class Arm:
    """A monitor and the joint states that it is told, at 100 Hz."""

    def __init__(self, **options):
        # The third joint is not commanded and has no limits.
        self.latch = StopLatch()
        self.monitor = SafetyMonitor(
            SafetyOptions(**options), ('a', 'b', 'c'), (-1.0, -2.0), (1.0, 2.0), self.latch
        )
        self.now, self.stamp = 1000.0, 5000 * SECOND
        self.positions = np.zeros(3)

    @property
    def status(self):
        return self.monitor.judge(self.now)

    def wait(self, seconds, judged=True):
        """Let time pass in which nothing comes."""
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            self.stamp += round(PERIOD * SECOND)
            if judged:
                self.monitor.judge(self.now)

    def tell(self, positions=None, velocities=(0.0, 0.0, 0.0), stamp=None):
        """Let the next state come; return whether it may be used."""
        self.wait(PERIOD)
        self.positions = np.array(self.positions if positions is None else positions, float)
        return self.monitor.take_state(
            self.now,
            self.stamp if stamp is None else stamp,
            self.positions,
            np.array(velocities, float),
        )

    def run(self, seconds):
        """Let good states come for a while."""
        for _ in range(round(seconds / PERIOD)):
            assert self.tell()

    def start(self):
        self.tell()
        self.monitor.take_goal(self.now)
        assert self.status is Status.RUNNING
        return self

    def changes(self):
        changes = []
        while (change := self.monitor.take_change()) is not None:
            changes.append(change)
        return changes


@pytest.fixture
def arm():
    """Return an arm on its way to a goal."""
    return Arm().start()


def assert_waits_for_a_goal(arm, status):
    """See that the arm stays where it is until the next goal, and goes on then."""
    arm.run(3.0)
    assert arm.status is status
    arm.monitor.take_goal(arm.now)
    assert arm.status is Status.RUNNING


def test_nothing_leaves_before_the_first_state():
    arm = Arm()
    assert arm.status is Status.NO_STATE
    arm.wait(10.0)
    assert arm.status is Status.NO_STATE


def test_nothing_leaves_before_the_first_goal():
    arm = Arm()
    arm.tell()
    assert arm.status is Status.NO_GOAL
    assert arm.monitor.reason == 'no goal has been received yet'


def test_commands_leave_with_good_states_and_a_goal(arm):
    for _ in range(100):
        assert arm.tell()
        assert arm.status is Status.RUNNING


def test_a_goal_without_a_state_is_refused():
    arm = Arm()
    with pytest.raises(GoalError) as refused:
        arm.monitor.take_goal(arm.now)
    assert refused.value.code == Status.NO_STATE.code == 'no_state'
    arm.tell()
    assert arm.status is Status.NO_GOAL


def test_stale_state_stops_the_arm(arm):
    arm.wait(0.19)
    assert arm.status is Status.RUNNING
    arm.wait(0.03)
    assert arm.status is Status.STALE_STATE
    assert arm.monitor.reason == 'no joint state for more than 0.2 s'


def test_a_silence_that_nobody_judged_is_noticed_by_the_next_state(arm):
    arm.wait(0.5, judged=False)
    assert arm.monitor.take_state(arm.now, arm.stamp, np.zeros(3), np.zeros(3))
    assert arm.status is Status.STALE_STATE


def test_without_patience_any_interruption_drops_the_goal():
    arm = Arm(resume_within=0.0).start()
    arm.run(0.1)
    arm.wait(0.1)
    assert arm.status is Status.RUNNING
    arm.monitor.take_bad_state(arm.now, 'garbled')
    arm.run(0.3)
    assert arm.status is Status.NO_GOAL


def test_motion_goes_on_after_a_short_silence_once_states_are_good_for_a_while(arm):
    arm.wait(0.5)
    arm.run(0.2)
    assert arm.status is Status.STALE_STATE
    arm.run(0.02)
    assert arm.status is Status.RUNNING


@pytest.mark.parametrize('judged', [True, False])
def test_a_long_silence_drops_the_goal(arm, judged):
    arm.wait(1.1, judged)
    arm.run(1.0)
    assert arm.status is Status.NO_GOAL
    assert 'no joint state for more than 0.2 s' in arm.monitor.reason
    assert_waits_for_a_goal(arm, Status.NO_GOAL)


def test_states_that_come_and_go_never_move_the_arm(arm):
    arm.wait(0.3)
    for _ in range(20):
        arm.tell()
        assert arm.status is Status.STALE_STATE
        arm.wait(0.25)
    arm.run(1.0)
    assert arm.status is Status.NO_GOAL


def test_a_state_that_cannot_be_read_stops_the_arm_at_once(arm):
    arm.monitor.take_bad_state(arm.now, 'the joint state lacks b')
    assert arm.status is Status.BAD_STATE
    assert arm.monitor.reason == 'the joint state lacks b'


@pytest.mark.parametrize('bad', [NAN, math.inf, -math.inf])
@pytest.mark.parametrize('joint', range(3))
@pytest.mark.parametrize('what', ['positions', 'velocities'])
def test_a_state_that_is_not_finite_stops_the_arm_at_once(arm, what, joint, bad):
    numbers = [0.0, 0.0, 0.0]
    numbers[joint] = bad
    assert not arm.tell(**{what: numbers})
    assert arm.status is Status.BAD_STATE


@pytest.mark.parametrize('what', ['positions', 'velocities'])
def test_a_state_of_another_length_stops_the_arm(arm, what):
    assert not arm.tell(**{what: np.zeros(2)})
    assert arm.status is Status.BAD_STATE
    assert 'got' in arm.monitor.reason


@pytest.mark.parametrize('velocity', [10.1, -1e30])
def test_a_velocity_that_no_joint_has_stops_the_arm(arm, velocity):
    assert not arm.tell(velocities=(0.0, 0.0, velocity))
    assert arm.status is Status.BAD_STATE


def test_one_bad_state_after_another_stops_the_arm_until_all_is_well_for_a_while(arm):
    for _ in range(100):
        arm.tell(velocities=(0.0, NAN, 0.0))
        assert arm.status is Status.BAD_STATE
        arm.tell()
        assert arm.status is Status.BAD_STATE


def test_motion_goes_on_after_a_bad_state(arm):
    arm.monitor.take_bad_state(arm.now, 'garbled')
    arm.run(0.25)
    assert arm.status is Status.RUNNING


def test_bad_states_for_long_drop_the_goal(arm):
    for _ in range(110):
        arm.tell(velocities=(0.0, NAN, 0.0))
        assert arm.status is Status.BAD_STATE
    arm.run(1.0)
    assert arm.status is Status.NO_GOAL


def test_silence_after_a_bad_state_is_told_as_silence(arm):
    arm.monitor.take_bad_state(arm.now, 'garbled')
    arm.wait(0.3)
    assert arm.status is Status.STALE_STATE


def test_silence_after_bad_states_only_is_told_as_silence():
    arm = Arm()
    arm.monitor.take_bad_state(arm.now, 'garbled')
    assert arm.status is Status.BAD_STATE
    arm.wait(0.3)
    assert arm.status is Status.STALE_STATE


@pytest.mark.parametrize('position', [1.06, -1.06])
def test_a_joint_outside_its_limits_stops_the_arm(position):
    arm = Arm()
    assert not arm.tell((position, 0.0, 0.0))
    assert arm.status is Status.OUTSIDE_LIMITS
    assert arm.monitor.reason.startswith(f'a is at {position:.3f}, its range is -1.050 to 1.050')


def test_a_joint_a_little_outside_its_limits_is_taken():
    arm = Arm()
    assert arm.tell((1.04, -2.04, 0.0))
    assert arm.status is Status.NO_GOAL


def test_a_joint_without_limits_may_be_anywhere():
    arm = Arm()
    assert arm.tell((0.0, 0.0, 100.0))
    assert arm.status is Status.NO_GOAL


def test_no_goal_is_taken_while_a_joint_is_outside_its_limits():
    arm = Arm()
    arm.tell((1.5, 0.0, 0.0))
    with pytest.raises(GoalError, match=r'outside its limits \(a is at 1.500'):
        arm.monitor.take_goal(arm.now)


@pytest.mark.parametrize('joint', range(3))
def test_a_jump_of_a_joint_drops_the_goal(arm, joint):
    positions = np.zeros(3)
    positions[joint] = 0.2
    assert arm.tell(positions)
    assert arm.status is Status.JOINTS_JUMPED
    assert f'{"abc"[joint]} from 0.000 to 0.200' in arm.monitor.reason
    assert_waits_for_a_goal(arm, Status.JOINTS_JUMPED)


def test_a_fast_joint_is_no_jump(arm):
    for step in range(20):
        arm.tell((0.0, 0.0, 0.09 * step), (0.0, 0.0, 9.0))
        assert arm.status is Status.RUNNING


def test_a_joint_that_moved_during_a_silence_is_no_jump(arm):
    arm.wait(0.5)
    arm.tell((0.0, 0.0, 3.0))
    arm.run(0.3)
    assert arm.status is Status.RUNNING


def test_states_that_come_in_a_bunch_are_no_jump(arm):
    for step in range(1, 6):
        state = np.array((0.0, 0.0, 0.08 * step))
        arm.monitor.take_state(arm.now, arm.stamp + step * SECOND // 100, state, np.zeros(3))
    assert arm.status is Status.RUNNING


def test_a_stamp_far_ahead_hides_no_jump(arm):
    arm.tell((0.0, 0.0, 3.0), stamp=arm.stamp + 3600 * SECOND)
    assert arm.status is Status.JOINTS_JUMPED


def test_a_clock_set_back_drops_the_goal(arm):
    arm.stamp -= 2 * SECOND
    assert arm.tell()
    assert arm.status is Status.CLOCK_JUMPED
    assert arm.monitor.reason.startswith('by 1.990 s')
    assert_waits_for_a_goal(arm, Status.CLOCK_JUMPED)


def test_a_late_message_is_dropped(arm):
    assert not arm.tell((0.5, 0.0, 0.0), stamp=arm.stamp - SECOND // 2)
    assert arm.status is Status.RUNNING
    assert arm.tell((0.0, 0.0, 0.0))
    assert arm.status is Status.RUNNING


def test_late_messages_only_are_silence(arm):
    newest = arm.stamp
    for step in range(30):
        assert not arm.tell(stamp=newest - SECOND // 2 + step)
    assert arm.status is Status.STALE_STATE


def test_states_without_stamps_are_taken():
    arm = Arm()
    for _ in range(10):
        assert arm.tell(stamp=0)
    assert arm.status is Status.NO_GOAL


def test_a_stale_goal_stops_the_arm(arm):
    arm.run(59.9)
    assert arm.status is Status.RUNNING
    arm.run(0.2)
    assert arm.status is Status.STALE_GOAL
    assert_waits_for_a_goal(arm, Status.STALE_GOAL)


def test_a_new_goal_lasts_as_long_as_the_first(arm):
    arm.run(50.0)
    arm.monitor.take_goal(arm.now)
    arm.run(50.0)
    assert arm.status is Status.RUNNING


def test_a_goal_may_last_for_ever():
    arm = Arm(goal_timeout=0.0).start()
    arm.run(100.0)
    assert arm.status is Status.RUNNING


def test_a_goal_may_be_dropped(arm):
    arm.monitor.drop_goal('deactivated')
    assert arm.status is Status.NO_GOAL
    assert arm.monitor.reason == 'deactivated'
    assert_waits_for_a_goal(arm, Status.NO_GOAL)


def test_a_stop_counts_at_once(arm):
    arm.monitor.stop('asked to')
    assert arm.monitor.status is Status.STOPPED
    assert arm.monitor.reason == 'asked to'


def test_no_message_ends_a_stop(arm):
    arm.monitor.stop('asked to')
    for happen in (
        lambda: arm.run(2.0),
        lambda: arm.wait(2.0),
        lambda: arm.tell((0.5, 0.0, 0.0)),
        lambda: arm.tell((NAN, 0.0, 0.0)),
        lambda: arm.tell((0.5, 0.0, 0.0), stamp=0),
        lambda: arm.monitor.take_bad_state(arm.now, 'garbled'),
        lambda: arm.monitor.fail('no solution'),
        lambda: arm.monitor.drop_goal('gone'),
        lambda: arm.monitor.follow(arm.now, 9.0),
        lambda: arm.monitor.stop('asked again'),
        lambda: arm.monitor.restart(),
        lambda: arm.tell((0.0, 0.0, 0.0)),
    ):
        happen()
        assert arm.status is Status.STOPPED
        with pytest.raises(GoalError, match='stopped until the stop is cleared'):
            arm.monitor.take_goal(arm.now)
        assert arm.status is Status.STOPPED
    assert arm.monitor.reason == 'asked to'


def test_a_stop_outlives_its_monitor(arm):
    arm.monitor.stop('asked to')
    heir = SafetyMonitor(OPTIONS, ('a',), (-1.0,), (1.0,), latch=arm.latch)
    assert heir.judge(0.0) is Status.STOPPED
    heir.clear()
    assert heir.judge(0.0) is Status.NO_STATE


def test_clearing_a_stop_does_not_move_the_arm(arm):
    arm.monitor.stop('asked to')
    arm.run(0.5)
    arm.monitor.clear()
    assert_waits_for_a_goal(arm, Status.NO_GOAL)


def test_clearing_a_stop_makes_no_bad_state_good(arm):
    arm.monitor.stop('asked to')
    arm.tell((NAN, 0.0, 0.0))
    arm.monitor.clear()
    assert arm.status is Status.BAD_STATE


def test_an_interruption_drops_the_goal_and_lasts_until_its_end(arm):
    arm.monitor.interrupt(Status.OTHER_COMMANDER, 'a joystick')
    assert (arm.monitor.status, arm.monitor.reason) == (Status.OTHER_COMMANDER, 'a joystick')
    arm.run(2.0)
    assert arm.status is Status.OTHER_COMMANDER
    with pytest.raises(GoalError, match='a joystick'):
        arm.monitor.take_goal(arm.now)
    arm.monitor.resume()
    assert_waits_for_a_goal(arm, Status.NO_GOAL)


def test_a_stop_outlasts_an_interruption(arm):
    arm.monitor.stop('asked to')
    arm.monitor.interrupt(Status.OTHER_COMMANDER, 'a joystick')
    assert arm.status is Status.STOPPED
    arm.monitor.resume()
    assert arm.status is Status.STOPPED
    arm.monitor.interrupt(Status.OTHER_COMMANDER, 'a joystick')
    arm.monitor.clear()
    assert arm.status is Status.OTHER_COMMANDER


def test_an_interruption_is_one_change_whatever_else_is_wrong(arm):
    while arm.monitor.take_change():
        pass
    for _ in range(5):
        arm.monitor.interrupt(Status.OTHER_COMMANDER, 'a joystick')
        arm.wait(1.0)
        assert arm.status is Status.OTHER_COMMANDER
    assert arm.monitor.take_change().new is Status.OTHER_COMMANDER
    assert arm.monitor.take_change() is None
    arm.monitor.interrupt(Status.OTHER_COMMANDER, 'two joysticks')
    assert arm.monitor.take_change().reason == 'two joysticks'


def test_a_stop_of_another_thread_counts_at_once(arm):
    arm.latch.set('asked to')
    arm.monitor.update_stop()
    assert arm.monitor.status is Status.STOPPED
    assert not arm.monitor.has_goal


def test_a_stop_that_is_cleared_before_anybody_looks_drops_the_goal(arm):
    arm.latch.set('asked to')
    arm.latch.clear()
    assert_waits_for_a_goal(arm, Status.NO_GOAL)


def test_no_goal_is_taken_after_a_stop_that_nobody_has_looked_at(arm):
    arm.latch.set('asked to')
    with pytest.raises(GoalError, match='stopped until the stop is cleared'):
        arm.monitor.take_goal(arm.now)


def test_an_arm_that_does_not_follow_is_stopped(arm):
    for _ in range(51):
        arm.tell()
        arm.monitor.follow(arm.now, OPTIONS.max_following_error + 0.001)
        assert arm.status is Status.RUNNING
    arm.tell()
    arm.monitor.follow(arm.now, OPTIONS.max_following_error + 0.001)
    assert arm.status is Status.NOT_FOLLOWING
    assert arm.monitor.reason.startswith('the tool is 0.081 m from its set-point')
    assert_waits_for_a_goal(arm, Status.NOT_FOLLOWING)


def test_an_arm_that_catches_up_goes_on(arm):
    for step in range(200):
        arm.tell()
        arm.monitor.follow(arm.now, OPTIONS.max_following_error if step % 40 == 0 else 0.5)
    assert arm.status is Status.RUNNING


def test_an_unknown_distance_is_one_too_far(arm):
    for _ in range(60):
        arm.tell()
        arm.monitor.follow(arm.now, NAN)
    assert arm.status is Status.NOT_FOLLOWING


def test_one_goal_after_another_does_not_hide_an_arm_that_is_stuck(arm):
    for _ in range(60):
        arm.tell()
        if arm.status is Status.RUNNING:
            arm.monitor.take_goal(arm.now)
        arm.monitor.follow(arm.now, 0.5)
    assert arm.status is Status.NOT_FOLLOWING


def test_a_new_goal_gives_an_arm_that_was_stuck_time_to_follow(arm):
    for _ in range(60):
        arm.tell()
        arm.monitor.follow(arm.now, 0.5)
    arm.monitor.take_goal(arm.now)
    for _ in range(40):
        arm.tell()
        arm.monitor.follow(arm.now, 0.5)
        assert arm.status is Status.RUNNING


def test_without_a_command_the_arm_waits_for_a_new_goal(arm):
    arm.monitor.fail('the policy asks for nan')
    assert arm.monitor.status is Status.NO_COMMAND
    assert arm.monitor.reason == 'the policy asks for nan'
    assert_waits_for_a_goal(arm, Status.NO_COMMAND)


def test_a_restart_forgets_goal_and_states(arm):
    arm.monitor.restart()
    assert arm.status is Status.NO_STATE
    assert arm.tell((0.9, 0.0, 0.0), stamp=0)
    assert arm.status is Status.NO_GOAL


def test_a_time_that_goes_back_makes_nothing_younger(arm):
    arm.wait(0.3)
    assert arm.monitor.judge(arm.now - 0.25) is Status.STALE_STATE
    arm.monitor.take_state(arm.now - 10.0, arm.stamp, arm.positions, np.zeros(3))
    assert arm.monitor.judge(arm.now) is Status.STALE_STATE


def test_a_time_that_is_none_does_not_keep_a_state_fresh(arm):
    arm.monitor.take_state(NAN, arm.stamp, arm.positions, np.zeros(3))
    arm.wait(0.3)
    assert arm.status is Status.STALE_STATE


def test_a_stop_hides_what_is_wrong_with_the_state_and_that_what_became_of_the_goal(arm):
    arm.monitor.fail('no solution')
    assert arm.status is Status.NO_COMMAND
    arm.wait(0.3)
    assert arm.status is Status.STALE_STATE
    arm.monitor.stop('asked to')
    assert arm.status is Status.STOPPED


def test_each_change_is_told_once(arm):
    assert [(c.old, c.new) for c in arm.changes()] == [
        (Status.NO_STATE, Status.NO_GOAL),
        (Status.NO_GOAL, Status.RUNNING),
    ]
    arm.wait(0.8)
    (change,) = arm.changes()
    assert change == (Status.RUNNING, Status.STALE_STATE, 'no joint state for more than 0.2 s')
    arm.wait(0.1)
    assert arm.changes() == []


def test_a_change_that_did_not_last_is_told_too(arm):
    arm.changes()
    arm.monitor.fail('no solution')
    arm.monitor.take_goal(arm.now)
    assert [change.new for change in arm.changes()] == [Status.NO_COMMAND, Status.RUNNING]


def test_two_arms_that_take_turns_are_no_place_to_start_from(arm):
    arm.monitor.drop_goal('a test')
    for _ in range(50):
        for place in (0.0, 0.5):
            arm.tell((0.0, 0.0, place))
            if place or arm.now > 1000.1:
                with pytest.raises(GoalError, match='positions jumped'):
                    arm.monitor.take_goal(arm.now)
    arm.run(0.3)
    arm.monitor.take_goal(arm.now)


def test_changes_that_nobody_takes_do_not_pile_up(arm):
    for _ in range(1000):
        arm.monitor.stop('asked to')
        arm.monitor.clear()
    assert len(arm.changes()) == 100


@pytest.mark.parametrize('status', Status)
def test_every_status_says_what_it_means(status):
    assert len(status.value.split()) >= 4
    calm = (Status.RUNNING, Status.NO_GOAL, Status.STALE_GOAL)
    assert status.is_trouble == (status not in calm)


@pytest.mark.parametrize(
    ('lower', 'upper', 'text'),
    [
        ((1.0,), (-1.0,), 'a: a lower limit below the upper is expected, got 1.0 and -1.0'),
        ((NAN,), (1.0,), 'a: a lower limit below the upper'),
        ((0.0, 0.0), (1.0, 1.0), r'up to 1 joints are expected, got arrays of shape \(2,\)'),
        ((0.0,), (), r'\(1,\) and \(0,\)'),
    ],
)
def test_limits_that_are_none_are_refused(lower, upper, text):
    with pytest.raises(OptionError, match=text):
        SafetyMonitor(OPTIONS, ('a',), lower, upper)


def test_options_out_of_range_are_refused():
    with pytest.raises(OptionError, match='state_timeout'):
        Arm(state_timeout=NAN)


NUMBERS = st.floats(-0.05, 0.05) | st.sampled_from((NAN, math.inf, 1.06, -2.5, 0.3, 1e308, 20.0))
STATES = st.tuples(NUMBERS, NUMBERS, NUMBERS).map(np.array)
CALM = st.just(np.zeros(3))
GOOD = [(0.01, ('state', np.zeros(3), np.zeros(3), 0))]
WELL = [*22 * GOOD, (0.01, ('goal',))]
EVENTS = st.one_of(
    st.tuples(st.just('state'), CALM, CALM, st.just(0)),
    st.tuples(
        st.just('state'),
        STATES | CALM,
        STATES | CALM,
        st.sampled_from((0, -SECOND // 2, -3 * SECOND)),
    ),
    st.tuples(st.sampled_from(('goal', 'goal', 'stop', 'clear', 'fail', 'bad', 'drop'))),
    st.tuples(st.just('follow'), st.sampled_from((0.0, 0.5, NAN))),
)
TIMES = st.sampled_from((0.0, 0.01, 0.01, 0.1, 0.19, 0.3, 1.5, -1.0, NAN, 70.0))
# All is well before each few things that may go wrong.
STORIES = st.lists(
    st.lists(st.tuples(TIMES, EVENTS), max_size=8).map(lambda events: WELL + events), max_size=3
).map(lambda parts: [event for part in parts for event in part])


@pytest.mark.nightly
@given(STORIES)
def test_whatever_happens_commands_leave_only_for_a_fresh_goal_and_a_good_state(events):
    monitor = SafetyMonitor(OPTIONS, ('a', 'b', 'c'), (-1.0, -2.0), (1.0, 2.0))
    now = time = 0.0
    stopped, goal_at, good_at, last, last_stamp = False, None, None, None, 0
    for passed, (kind, *values) in events:
        # What the monitor is told may go back; what has truly passed never does.
        told = now + passed
        now = max(now, told) if not math.isnan(told) else now
        time += 0.01
        if kind == 'state':
            positions, velocities, shift = values
            stamp = round((100.0 + time) * SECOND) + shift
            used = monitor.take_state(told, stamp, positions, velocities)
            good = (
                np.isfinite(positions).all()
                and np.isfinite(velocities).all()
                and (np.abs(velocities) <= 10.0).all()
                and (np.abs(positions[:2]) <= (1.05, 2.05)).all()
            )
            assert not used or good
            back = last_stamp - stamp if last is not None else 0
            assert used == (good and not 0 < back <= SECOND)
            if used:
                if last is not None:
                    believed = max(now - good_at, min(-back / SECOND, 0.2))
                    if back > SECOND or np.abs(positions - last).max() > 10.0 * believed + 0.051:
                        goal_at = None
                good_at, last, last_stamp = now, positions, stamp
            elif not good and not 0 < back <= SECOND:
                assert monitor.judge(now) is not Status.RUNNING
        elif kind == 'goal':
            try:
                monitor.take_goal(told)
            except GoalError:
                assert monitor.status is not Status.RUNNING
            else:
                assert not stopped
                goal_at = now
        elif kind == 'stop':
            monitor.stop('asked to')
            stopped, goal_at = True, None
        elif kind == 'clear':
            monitor.clear()
            stopped = False
        elif kind == 'fail':
            monitor.fail('no solution')
            goal_at = None
        elif kind == 'drop':
            monitor.drop_goal('gone')
            goal_at = None
        elif kind == 'bad':
            monitor.take_bad_state(told, 'garbled')
            assert monitor.judge(now) is not Status.RUNNING
        elif kind == 'follow':
            monitor.follow(told, *values)
        if monitor.judge(now) is Status.RUNNING:
            assert not stopped
            assert goal_at is not None and now - goal_at <= 60.0
            assert good_at is not None and now - good_at <= 0.2
        if stopped:
            assert monitor.status is Status.STOPPED


@pytest.mark.parametrize(
    ('obstruction', 'singularity', 'status'),
    [
        ('', '', Status.NO_PROGRESS),
        ('table', '', Status.BLOCKED),
        ('', 'wrist', Status.NEAR_SINGULARITY),
        ('table', 'wrist', Status.BLOCKED),
    ],
)
def test_a_goal_without_progress_is_dropped_for_what_holds_the_arm_back(
    obstruction, singularity, status
):
    arm = Arm(progress_timeout=1.0)
    arm.start()
    while arm.status is Status.RUNNING and arm.now < 1020.0:
        arm.tell()
        arm.monitor.approach(arm.now, 0.2, 0.05, obstruction, singularity)
    assert arm.status is status
    assert (obstruction or singularity) in arm.monitor.reason
    assert arm.monitor.last_drop == status.code
