"""Whatever happens to an arm and its controller, no command leaves that exceeds a limit."""

from hypothesis import given, settings
from hypothesis import strategies as st
from led_arm import LedArm, SECOND, TICK
from mher_ros.control.motion_limiter import MotionLimits
from mher_ros.control.references import LEAD
from mher_ros.control.safety import JUMP_SLACK, SafetyOptions, Status
from mher_ros.control.workspace import GoalError
import numpy as np
import pytest

LIMITS = MotionLimits()
ROUNDING = 1e-9
ASIDE = 5e-3
"""
How far beside its way the point may be led that is not free [m].

Joints keep the tool's orientation, too; where velocities are told, the point follows the arm.
"""

TIMES = st.sampled_from((0.01, 0.008, 0.002)) | st.floats(1e-4, 0.15)
POINTS = st.tuples(*[st.floats(-0.5, 1.5)] * 3).map(np.array)
"""Parts of the workspace's edges; some are outside."""
ANYTHING = st.floats() | st.floats(-1.0, 1.0)
NUDGES = st.floats(-0.05, 0.05)
EVENTS = st.one_of(
    st.tuples(st.just('run'), st.integers(1, 25), TIMES),
    st.tuples(st.just('run'), st.integers(1, 25), TIMES),
    st.tuples(st.sampled_from(('goal', 'again')), POINTS),
    st.tuples(st.just('wish'), st.none() | st.tuples(*[ANYTHING] * 3)),
    st.tuples(st.just('stuck'), st.booleans()),
    st.tuples(st.just('nudge'), st.lists(NUDGES, min_size=7, max_size=7)),
    st.tuples(st.just('whirl'), st.lists(st.floats(-9.9, 9.9), min_size=7, max_size=7)),
    st.tuples(st.just('jump'), st.integers(0, 6), st.floats(-0.3, 0.3)),
    st.tuples(st.just('spoil'), st.integers(0, 6), ANYTHING),
    st.tuples(st.just('stamp'), st.integers(-5 * SECOND, 5 * SECOND)),
    st.tuples(st.just('silence'), st.floats(0.0, 2.0)),
    st.tuples(st.sampled_from(('bad', 'stop', 'clear', 'halt', 'restart', 'watch', 'answer'))),
)
STORIES = st.lists(EVENTS, min_size=1, max_size=14)


@pytest.mark.nightly
@pytest.mark.parametrize('output', ['twist', 'joint_position'])
@given(story=STORIES)
def test_whatever_happens_no_command_exceeds_a_limit(output, story):
    Trial(LedArm(output)).tell(story)


@pytest.mark.nightly
@pytest.mark.parametrize('output', ['pose', 'none', 'joint_trajectory', 'joint_velocity'])
@settings(max_examples=settings.default.max_examples // 5)
@given(story=STORIES)
def test_nor_does_one_of_the_outputs_that_are_made_in_the_same_way(output, story):
    Trial(LedArm(output)).tell(story)


class Trial:
    """An arm that anything happens to, and a judge of every command."""

    def __init__(self, arm):
        self.arm, self.free = arm, arm.policy
        self.last = None
        """The last command and its time, unless it was a stop."""
        self.is_disturbed = False
        """Whether an arm that is told velocities cannot be where these lead it."""
        self.low, self.high = arm.workspace.box_low, arm.workspace.box_high
        self.events = {
            'run': self.run,
            'goal': self.goal,
            'again': self.again,
            'wish': self.wish,
            'stuck': self.stick,
            'nudge': self.nudge,
            'whirl': self.whirl,
            'jump': self.jump,
            'spoil': self.spoil,
            'stamp': self.stamp,
            'silence': self.silence,
            'bad': self.bad,
            'stop': self.stop,
            'clear': arm.guard.clear,
            'halt': lambda: self.judge(arm.reach.halt('a test')),
            'restart': self.restart,
            'watch': lambda: self.judge(arm.reach.watch(arm.now)),
            'answer': lambda: self.judge(arm.reach.tick(arm.now)),
        }

    def tell(self, story):
        self.arm.start()
        self.run(1, TICK)
        for name, *details in story:
            self.events[name](*details)
        self.run(2, TICK)

    def run(self, ticks, seconds):
        for _ in range(ticks):
            self.pass_time(seconds)
            self.arm.tell_state()
            self.judge(self.arm.reach.tick(self.arm.now))
            self.arm.reach.think(self.arm.now)

    def pass_time(self, seconds):
        if seconds:
            self.arm.pass_time(seconds)
            self.is_disturbed |= seconds > LIMITS.longest_tick

    def stick(self, is_stuck):
        self.arm.is_stuck, self.is_disturbed = is_stuck, True

    def goal(self, place):
        space = self.arm.workspace
        try:
            self.arm.reach.take_goal(
                self.arm.now, space.low + place * (space.high - space.low), 'project'
            )
        except GoalError:
            pass

    def again(self, place):
        """Do what a person does after a stop."""
        self.arm.guard.clear()
        self.wish(None)
        self.run(25, TICK)
        self.goal(place)
        self.run(5, TICK)

    def wish(self, action):
        if action is None:
            self.arm.policy = self.free
        else:
            full = np.zeros(len(self.arm.interface.action), np.float32)
            with np.errstate(over='ignore'):
                full[:3] = action
            self.arm.policy = lambda observation, goal: full

    def nudge(self, by):
        """Push the arm, slowly enough to be believed."""
        self.pass_time(TICK)
        self.is_disturbed = True
        self.arm.positions += np.resize(by, len(self.arm.positions))
        self.arm.tell_state()
        self.judge(self.arm.reach.tick(self.arm.now))
        self.arm.reach.think(self.arm.now)

    def whirl(self, velocities):
        """Tell of velocities that are not the arm's, but believed."""
        self.pass_time(TICK)
        self.arm.tell_state(velocities=np.resize(velocities, len(self.arm.positions)))
        self.judge(self.arm.reach.tick(self.arm.now))
        self.arm.reach.think(self.arm.now)

    def jump(self, joint, by):
        self.pass_time(TICK)
        self.is_disturbed = True
        self.arm.positions[joint] += by
        self.arm.tell_state()
        self.judge(self.arm.reach.tick(self.arm.now))
        self.arm.reach.think(self.arm.now)

    def spoil(self, joint, value):
        for what in ('positions', 'velocities'):
            self.pass_time(TICK)
            told = getattr(self.arm, what).copy()
            told[joint] = value
            self.arm.tell_state(**{what: told})
            self.judge(self.arm.reach.tick(self.arm.now))
            self.arm.reach.think(self.arm.now)

    def stop(self):
        self.arm.guard.stop('a test')
        self.judge(self.arm.reach.watch(self.arm.now))

    def bad(self):
        self.arm.reach.take_bad_state(self.arm.now, 'a test')
        self.judge(self.arm.reach.watch(self.arm.now))

    def stamp(self, by):
        self.arm.stamp += by
        self.run(1, TICK)

    def silence(self, seconds):
        self.arm.now += seconds
        self.is_disturbed = True
        self.judge(self.arm.reach.watch(self.arm.now))

    def restart(self):
        self.judge(self.arm.reach.halt('a test'))
        self.arm.reach.restart()

    def judge(self, command):
        if command is None:
            return
        arm = self.arm
        arm.note(command)
        for part in vars(command).values():
            assert part is None or np.isfinite(part).all()
        if command.is_stop:
            assert not command.tool_velocity.any()
            assert command.joint_velocities is None or not command.joint_velocities.any()
            self.check_joints(command, LEAD)
            self.check_stop(command)
            self.last = None
            return
        assert arm.guard.status is Status.RUNNING
        velocity = command.tool_velocity
        assert np.linalg.norm(velocity) <= LIMITS.speed
        if self.last is None:
            before, passed = np.zeros(3), TICK
        else:
            before, passed = self.last[1].tool_velocity, arm.now - self.last[0]
        change = LIMITS.acceleration * min(passed, LIMITS.longest_tick)
        assert np.linalg.norm(velocity - before) <= change + ROUNDING
        self.check_box(command)
        self.check_joints(command, passed)
        self.last = arm.now, command
        self.believed = arm.reach._positions[: len(arm.model.joint_names)]

    def check_box(self, command):
        """Inside the box the point that is led stays inside; outside it does not go on."""
        tied = self.arm.output in ('twist', 'joint_velocity')
        if self.last is None:
            self.is_disturbed = False
            return
        if tied and self.is_disturbed:
            return
        aside = ROUNDING if self.arm.output in ('pose', 'none') else ASIDE
        old, new = self.last[1].tool_position, command.tool_position
        assert (new <= np.maximum(self.high, old) + aside).all()
        assert (new >= np.minimum(self.low, old) - aside).all()

    def check_stop(self, command):
        """No wrong reading is where the arm is told to stop."""
        if self.last is None or command.joint_positions is None:
            return
        told = SafetyOptions().joint_speed * (self.arm.now - self.last[0]) + JUMP_SLACK
        ahead = LEAD * self.arm.model.velocity_limits
        assert (np.abs(command.joint_positions - self.believed) <= told + ahead).all()

    def check_joints(self, command, passed):
        if command.joint_positions is None:
            return
        model, count = self.arm.model, len(self.arm.model.joint_names)
        most = model.velocity_limits * (1.0 + 1e-6) + 1e-5
        assert (np.abs(command.joint_velocities) <= most).all()
        if self.arm.output == 'joint_velocity':
            return
        assert (command.joint_positions >= model.lower - ROUNDING).all()
        assert (command.joint_positions <= model.upper + ROUNDING).all()
        if self.last is None or command.is_stop:
            # The way to where it can stop soonest, from where it is.
            start, passed = self.arm.reach._positions[:count], LEAD + TICK
            start = np.clip(start, model.lower, model.upper)
        else:
            start = self.last[1].joint_positions
        step = np.abs(command.joint_positions - start)
        assert (step <= most * min(passed, LEAD + TICK) + ROUNDING).all()
