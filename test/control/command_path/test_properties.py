"""Whatever happens to an arm, its states and its clock, no command exceeds a limit."""

from arm_models import load_arm, model_text
from command_judge import CommandJudge
from command_path_arm import CommandPathArm, SECOND, TICK
from hypothesis import given
from hypothesis import strategies as st
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.safety_monitor import Status
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.workspace import GoalError
import numpy as np
import pytest

LIMITS = MotionLimits()
STILL, STILL_FOR = 0.005, 0.25
"""Difference of the readings of an arm at rest [rad or m]; time for which it rests [s]."""
OUTSIDE, LATE = 5e-3, 20e-3
"""How far an arm that is commanded by velocities may be carried out of its box; if late [m]."""

TIMES = st.sampled_from((0.01, 0.008, 0.002, 0.02)) | st.floats(1e-4, 0.15)
POINTS = st.tuples(*[st.floats(-0.5, 1.5)] * 3).map(np.array)
"""Parts of the workspace's edges; some are outside."""
ANYTHING = st.floats() | st.floats(-1.0, 1.0)
NUDGES = st.floats(-0.05, 0.05)
EVENTS = st.one_of(
    st.tuples(st.just('run'), st.integers(1, 25), TIMES),
    st.tuples(st.just('run'), st.integers(1, 60), TIMES),
    st.tuples(st.sampled_from(('goal', 'again', 'at once')), POINTS),
    st.tuples(st.just('wish'), st.none() | st.tuples(*[ANYTHING] * 3)),
    st.tuples(st.just('stuck'), st.booleans()),
    st.tuples(st.just('nudge'), st.lists(NUDGES, min_size=7, max_size=7)),
    st.tuples(st.just('whirl'), st.lists(st.floats(-9.9, 9.9), min_size=7, max_size=7)),
    st.tuples(st.just('jump'), st.integers(0, 5), st.floats(-1.2, 1.2)),
    st.tuples(st.just('drift'), st.integers(0, 5), st.floats(-3.0, 3.0), st.integers(1, 30)),
    st.tuples(st.just('spoil'), st.integers(0, 5), ANYTHING),
    st.tuples(st.just('stamp'), st.integers(-5 * SECOND, 5 * SECOND)),
    st.tuples(st.just('silence'), st.floats(0.0, 2.0), TIMES),
    st.tuples(st.just('freeze'), st.floats(0.0, 2.0)),
    st.tuples(st.sampled_from(('bad', 'stop', 'clear', 'halt', 'restart', 'answer'))),
)
STORIES = st.lists(EVENTS, min_size=1, max_size=14)
ARMS = st.sampled_from(('fetch', 'panda', 'ur5e'))


@pytest.mark.nightly
@pytest.mark.parametrize('output', OUTPUTS)
@given(story=STORIES, name=ARMS)
def test_whatever_happens_no_command_exceeds_a_limit(output, story, name):
    Trial(output, name).tell(story)


class Trial:
    """An arm that anything happens to, and a judge of every command."""

    def __init__(self, output, name):
        robot, model = load_arm(name)
        self.arm = arm = CommandPathArm(output, name, 'fetch_reach')
        text = model_text(name) if robot.simulation_task else None
        named = robot if robot.simulation_task else robot.simulated()
        self.judge = CommandJudge(named, text, output, LIMITS, model)
        self.free = arm.policy
        self.box = arm.workspace.box_low, arm.workspace.box_high
        self.place, self.sent_at = None, -np.inf
        self.is_late = False
        """Whether states and commands were rarer than planned: such arms brake later."""
        self.events = {
            'run': self.run,
            'goal': self.goal,
            'again': self.again,
            'at once': self.at_once,
            'wish': self.wish,
            'stuck': self.stick,
            'nudge': self.nudge,
            'whirl': self.whirl,
            'jump': self.jump,
            'drift': self.drift,
            'spoil': self.spoil,
            'stamp': self.stamp,
            'silence': self.silence,
            'freeze': self.freeze,
            'bad': self.bad,
            'stop': lambda: arm.monitor.stop('a test'),
            'clear': arm.monitor.clear,
            'halt': lambda: arm.monitor.drop_goal('a test'),
            'restart': self.restart,
            'answer': self.answer,
        }

    def tell(self, story):
        self.arm.start()
        self.run(1, TICK)
        for name, *details in story:
            self.events[name](*details)
        self.arm.monitor.stop('the end')
        self.silence(3.0, TICK)
        assert not self.arm.path.is_moving

    def run(self, ticks, seconds):
        self.is_late |= seconds > 1.5 * TICK
        for _ in range(ticks):
            self.arm.pass_time(seconds)
            self.arm.send_state()
            self.answer()

    def stick(self, is_stuck):
        self.arm.is_stuck, self.judge.is_honest = is_stuck, False

    def goal(self, place):
        space = self.arm.workspace
        try:
            self.arm.controller.take_goal(
                self.arm.now, space.low + place * (space.high - space.low), 'project'
            )
        except GoalError:
            pass

    def again(self, place):
        """Do what a person does after a stop."""
        self.arm.monitor.clear()
        self.wish(None)
        self.run(25, TICK)
        self.goal(place)
        self.run(25, TICK)

    def at_once(self, place):
        """Stop, clear, and send a goal before the arm has come to rest."""
        self.arm.monitor.stop('a test')
        self.run(2, TICK)
        self.arm.monitor.clear()
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
        self.judge.is_honest = False
        self.arm.pass_time(TICK)
        self.arm.positions += np.resize(by, len(self.arm.positions))
        self.arm.send_state()
        self.answer()

    def whirl(self, velocities):
        """Tell of velocities that are not the arm's, but believed."""
        self.arm.pass_time(TICK)
        self.arm.send_state(velocities=np.resize(velocities, len(self.arm.positions)))
        self.answer()

    def jump(self, joint, by):
        self.judge.is_honest = False
        self.arm.pass_time(TICK)
        told = self.arm.positions.copy()
        told[joint] += by
        self.arm.send_state(positions=told)
        self.answer()

    def drift(self, joint, speed, ticks):
        """Tell of a joint that moves on by itself."""
        self.judge.is_honest = False
        for tick in range(ticks):
            self.arm.pass_time(TICK)
            told = self.arm.positions.copy()
            told[joint] += speed * TICK * tick
            self.arm.send_state(positions=told)
            self.answer()

    def spoil(self, joint, value):
        self.judge.is_honest = False
        for what in ('positions', 'velocities'):
            self.arm.pass_time(TICK)
            told = getattr(self.arm, what).copy()
            told[joint] = value
            self.arm.send_state(**{what: told})
            self.answer()

    def bad(self):
        self.arm.path.monitor.take_bad_state(self.arm.now, 'a test')
        self.answer()

    def stamp(self, by):
        self.arm.stamp += by
        self.run(1, TICK)

    def silence(self, seconds, tick):
        """Let no state come, while the node goes on."""
        self.is_late |= tick > 1.5 * TICK
        end = self.arm.now + seconds
        while self.arm.now < end:
            self.arm.pass_time(max(tick, 0.002))
            self.answer()

    def freeze(self, seconds):
        """Hold the node."""
        if seconds:
            self.judge.is_honest = False
            self.arm.pass_time(seconds)
        self.answer()

    def restart(self):
        self.arm.monitor.drop_goal('a test')
        self.silence(0.5, TICK)
        self.arm.path.restart()

    def answer(self):
        arm = self.arm
        command = arm.path.tick(arm.now)
        if command is None:
            return
        if arm.now < arm.path.leaves_at:
            arm.pass_time(arm.path.leaves_at - arm.now)
        assert arm.now - self.sent_at >= 0.9 * TICK - 1e-9
        # Where the arm stood still for a quarter second, and five states, as far as it was told.
        times, told = zip(*arm.told, strict=True)
        starts = told[-max(5, sum(time >= times[-1] - STILL_FOR for time in times)) :]
        if len(starts) < 5 or times[-1] - times[0] < STILL_FOR:
            starts = ()
        elif np.ptp(starts, axis=0).max() > STILL:
            starts = ()
        later = [told for time, told in arm.told if time > self.sent_at + 1.0]
        rests = bool(later) and np.ptp(later, axis=0).max() <= 0.012
        self.sent_at = arm.now
        arm.note(command)
        for part in vars(command).values():
            assert part is None or np.isfinite(part).all()
        if command.is_stop:
            assert not command.tool_velocity.any()
            assert command.joint_velocities is None or not command.joint_velocities.any()
        else:
            braking = arm.monitor.status is not Status.RUNNING
            assert not braking or np.any(command.tool_velocity) or command.joint_velocities.any()
        # What velocities do depends on where the arm is, whatever the node was told.
        is_there = arm.output == 'joint_velocity'
        measured = arm.positions if is_there else arm.path.positions
        self.judge.take(arm.now, command, measured, starts, rests)
        self.check_box(command)
        arm.path.plan(arm.now)

    def check_box(self, command):
        """Inside the box the set-point stays inside; outside it goes no farther out."""
        is_velocity = self.arm.output in ('twist', 'joint_velocity')
        place, old = command.tool_position, self.place
        self.place = place
        if old is None or (is_velocity and not self.judge.is_honest):
            return
        slack = (LATE if self.is_late else OUTSIDE) if is_velocity else 1e-6
        low, high = self.box
        if np.linalg.norm(place - old) < 0.05:  # else it began anew where the arm is
            assert (place >= np.minimum(low, old) - slack).all()
            assert (place <= np.maximum(high, old) + slack).all()


def test_a_motion_may_begin_at_the_last_setpoint_or_at_the_arm_beside_it():
    story = [('stuck', True), ('freeze', 2.0), ('again', np.array([0.0, 1.0, 1.0]))]
    Trial('joint_trajectory', 'fetch').tell(story)
