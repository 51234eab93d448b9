"""
Judges the commands that an arm got, from outside: by when they came and by what they ask for.

Time between two commands is one command period T = 1 / rate, whatever the clock says: a controller
may carry a command out in its next cycle. So between consecutive commands

- the tool moves at most speed * T, and its velocity changes by at most acceleration * T,
- so do the joints, by their own limits, and no joint leaves its range,
- the tool is not sent out of its box, nor farther out where it is outside (positions only),
- at least 0.85 T pass by the clock, and ten commands take at least 9 T / 1.05.

A pause of more than 0.1 s ends a motion: the arm is at rest then. A motion begins where the last
command left off. After more than 1 s it may begin where the arm is, and must do so if the arm has
left the place of the last command. A motion ends slowly, too: the last command before a silence
leaves no velocity that could not end within T.

After a stop only a ramp may follow, which ends soon, goes not far and never back.

Nothing of mher_ros is imported here.
"""

import bisect
import dataclasses

from controllers import CARRIED_OUT
import numpy as np

RELATIVE = 1e-3
"""By which a limit may be missed, relative to it."""
ABSOLUTE = 1e-6
"""By which a displacement in one period may be missed [m or rad]."""
BOX = 1e-5
"""By which the box may be missed [m]."""
CLOSEST, FASTEST, WINDOW = 0.85, 1.05, 10
PAUSE = (0.08, 0.2)
"""
Below the first a motion goes on, above the second it has ended; between, either [s].

Whoever decides which at 0.1 s may be kept from running before the command leaves.
"""
RECENT = (0.9, 1.2)
"""The same for whether the last command is where a motion begins [s]."""
SILENCE = 0.5
"""What is not followed within this time has ended [s]."""
NEAR, SAGGING = (0.03, 0.02), (0.1, 0.05)
"""
How far an arm that holds its last command may be from it: a joint, the tool [rad, m].

The latter if it has not moved since it came to rest.
"""
RESTED, MOVED = 1.0, 0.01
"""When an arm has come to rest after a command [s]; how far a joint moves at rest [rad or m]."""
SETTLED = 0.5
"""How old a measured state may be that a motion begins at [s]."""
RAMP = 0.3
"""Time that a ramp may take beyond speed / acceleration [s]."""
STRETCHED, LONGEST = 2.0, 2.0
"""
Of a longer gap only so many periods count, since a process may be kept from running.

Whatever the gaps, a ramp ends within the second [s].
"""
BRAKING = 0.4
"""Share of the acceleration that a ramp uses at least."""
SPAN, BACK = 0.01, 0.001
"""How far a ramp may go beyond that, and how far back [m]."""
SLOW = 0.02
"""Slower than this there is no direction to go back in [m/s]."""
SEEN = (0.0, 0.05, 0.1, 0.15)
"""Ages of a state that a joint velocity may have been worked out for [s]."""
LINEARISED = {'tool speed': 0.02, 'tool acceleration': 0.05}
"""
Relative tolerances for joint velocities.

They move the tool by the Jacobian of where the arm is, which is known a while late.
"""
EXECUTED = 1.3
"""Over a window, the tool of an arm that carries commands out may be this much faster."""
SHORTEST = 0.04
"""Window for that [s]."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """What commands must keep to."""

    period: float
    """Of commands [s]."""
    speed: float
    acceleration: float
    """Of the tool [m/s, m/s^2]."""
    joint_velocity: np.ndarray
    joint_acceleration: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    box: tuple = (-np.inf, np.inf)
    """Corners of the box that the tool is kept in (3,), (3,) [m]."""


@dataclasses.dataclass(frozen=True)
class Command:
    """One command as it was published."""

    time: float
    """When it was handed to the middleware, by the system's clock [s]."""
    values: np.ndarray
    """Joints (k,), or what the tool is told (3,)."""
    seconds: float = 0.0
    """Time from start of a trajectory's point [s]."""


@dataclasses.dataclass(frozen=True)
class Hold:
    """From the answer to a stop until a goal that was sent after it was cleared."""

    begin: float
    end: float
    cause: str = 'stop'


@dataclasses.dataclass(frozen=True)
class Record:
    """What happened in one sequence, after what happened before."""

    commands: list
    measured: list = dataclasses.field(default_factory=list)
    """(time, joints): where the arm truly was."""
    holds: list = dataclasses.field(default_factory=list)
    frozen: list = dataclasses.field(default_factory=list)
    """(begin, end): when the process that commands was kept from running."""
    before: list = dataclasses.field(default_factory=list)
    """Commands that were judged before; the latest of them may still be in motion."""
    begin: float = -np.inf
    end: float = np.inf
    """When it was begun and ended: only silence that is over by then is known to be one [s]."""

    @property
    def judged(self):
        """Up to when commands were judged before [s]."""
        return self.before[-1].time if self.before else -np.inf


@dataclasses.dataclass(frozen=True)
class Violation:
    kind: str
    value: float
    limit: float
    time: float

    @property
    def ratio(self):
        return self.value / self.limit if self.limit else np.inf


class Judge:
    """Knows the arm, what kind of command it gets, and the limits."""

    def __init__(self, arm, output, limits):
        self._arm, self._limits = arm, limits
        self._output = output
        self._by_velocity = output in ('joint_velocity', 'twist')
        self._of_joints = output.startswith('joint')
        self.held = self.continued = 0
        """
        Pauses in which the process was kept from running, and after how many the motion went on.

        It may be held between the last look at the clock and the sending of a command, which
        nobody can prevent. So a few of these are no violation.
        """

    def judge(self, record):
        """Return the violations of a record, by time."""
        found = []
        commands = []
        for command in (*record.before, *record.commands):
            if np.isfinite(command.values).all():
                commands.append(command)
            else:
                found.append(Violation('not finite', np.inf, 1.0, command.time))
        if not commands:
            return found
        moves = (self._velocities if self._by_velocity else self._positions)(commands, record)
        found += self._timing(commands) + self._limited(moves) + self._stops(moves, record)
        last = None
        for motion in _motions(commands):
            found += self._executed(motion, last, record)
            last = motion[-1]
        found = [violation for violation in found if violation.time > record.judged]
        found += self._ends(moves, record)
        return sorted(found, key=lambda violation: violation.time)

    def _timing(self, commands):
        times = [command.time for command in commands]
        period, found = self._limits.period, []
        for i in range(1, len(times)):
            gap = times[i] - times[i - 1]
            if gap < CLOSEST * period:
                found.append(_below('interval', gap, CLOSEST * period, times[i]))
            if i >= WINDOW - 1:
                span, least = times[i] - times[i - WINDOW + 1], (WINDOW - 1) * period / FASTEST
                if span < least:
                    found.append(_below('rate', span, least, times[i]))
        return found

    def _positions(self, commands, record):
        """Return what positions ask for, one move for each command."""
        period, moves = self._limits.period, []
        last = None
        for command, tool in zip(commands, self._tools(commands), strict=True):
            gap = np.inf if last is None else command.time - last.time
            bases = [last.values] if self._goes_on(record, last, command.time) else []
            if gap > RECENT[0]:
                bases += self._begun(record, command.time, gap)
            starts = self._placed(bases)
            tools = [(tool - start) / period for start in starts]
            out = self._beyond(tool) - max(0.0, *map(self._beyond, starts))
            joints = [(command.values - base) / period for base in bases]
            begins = not moves
            paused = not begins and gap > PAUSE[1]
            held = paused and _held(record.frozen, last.time, command.time)
            goes_on = held or not (begins or paused)
            rests = begins or gap > PAUSE[0] or _is_unsure(moves, command, record)
            changes = _changes(tools, moves[-1].tools if goes_on else [], rests)
            joint_changes = _changes(joints, moves[-1].joints if goes_on else [], rests)
            moves.append(_Move(command, tools, joints, changes, joint_changes, out))
            if held and command.time > record.judged:
                most = self._limits.acceleration * period * (1.0 + RELATIVE) + ABSOLUTE / period
                self.held += 1
                self.continued += bool(moves[-1].tool_speed() > most)
            last = command
        return moves

    def _velocities(self, commands, record):
        """Return what velocities ask for, one move for each command."""
        moves, last = [], None
        state = before = None
        for command in commands:
            gap = np.inf if last is None else command.time - last.time
            jacobians, joints = np.eye(3)[None], []
            if self._of_joints:
                seen = [_at(record.measured, command.time - age) for age in SEEN]
                is_new = state is None or gap > PAUSE[0]
                state = seen[0] if is_new else state + gap * last.values
                jacobians = self._arm.jacobian(np.array([state, *seen]))[:, :3]
                joints = [command.values]
            tools = list(jacobians @ command.values)
            rests = not moves or gap > PAUSE[0] or _is_unsure(moves, command, record)
            changes = tools if rests else []
            joint_changes = joints if rests else []
            held = bool(moves) and _held(record.frozen, last.time, command.time)
            if moves and (gap <= PAUSE[1] or held):
                # The command changes at once, what it does to the tool as the arm moves.
                part = self._limits.period / max(gap, self._limits.period)
                moved = jacobians @ (command.values - last.values)
                changes = [*changes, *(moved + part * ((jacobians - before) @ last.values))]
                joint_changes = [*joint_changes, *_changes(joints, moves[-1].joints, False)]
            moves.append(_Move(command, tools, joints, changes, joint_changes))
            last, before = command, jacobians
        return moves

    def _limited(self, moves):
        limits, found = self._limits, []
        period = limits.period
        wider = LINEARISED if self._output == 'joint_velocity' else {}
        small = ABSOLUTE / period
        for move in moves:
            time = move.command.time
            checks = [
                ('tool speed', move.tool_speed(), limits.speed, small),
                (
                    'tool acceleration',
                    move.tool_change() / period,
                    limits.acceleration,
                    small / period,
                ),
            ]
            if self._of_joints:
                checks += [
                    ('joint velocity', move.joint_speed(limits.joint_velocity), 1.0, small),
                    (
                        'joint acceleration',
                        move.joint_change(limits.joint_acceleration) / period,
                        1.0,
                        small / period / limits.joint_acceleration.min(),
                    ),
                ]
            if self._of_joints and not self._by_velocity:
                values = move.command.values
                out = np.maximum(limits.lower - values, values - limits.upper).max()
                if out > ABSOLUTE:
                    found.append(Violation('joint position', out, ABSOLUTE, time))
            if move.out > BOX:
                found.append(Violation('box', move.out, BOX, time))
            for kind, value, limit, slack in checks:
                if value > limit * (1.0 + wider.get(kind, RELATIVE)) + slack:
                    found.append(Violation(kind, value, limit, time))
        return found

    def _ends(self, moves, record):
        """Find commands that nothing follows although they leave the arm moving."""
        limits, found = self._limits, []
        most = limits.acceleration * limits.period * (1.0 + RELATIVE) + ABSOLUTE / limits.period
        times = [*(move.command.time for move in moves[1:]), np.inf]
        for move, following in zip(moves, times, strict=True):
            time = move.command.time
            held = any(begin < time + PAUSE[1] and time < end for begin, end in record.frozen)
            is_over = record.begin < time + SILENCE <= record.end
            silent = following - time > SILENCE and is_over
            if silent and not held and move.tool_speed() > most:
                found.append(Violation('abrupt end', move.tool_speed(), most, time))
        return found

    def _stops(self, moves, record):
        limits, found = self._limits, []
        longest = limits.speed / limits.acceleration + RAMP
        for hold in record.holds:
            before = [move for move in moves if move.command.time <= hold.begin]
            after = [move for move in moves if hold.begin < move.command.time < hold.end]
            start = np.zeros(3)
            if before and hold.begin - before[-1].command.time < PAUSE[1]:
                start = before[-1].tool
            speed = np.linalg.norm(start)
            most = speed**2 / (2.0 * BRAKING * limits.acceleration) + SPAN
            gone = progress = farthest = late = 0.0
            last = hold.begin
            for move in after:
                late += min(move.command.time - last, STRETCHED * limits.period)
                last = move.command.time
                if late > longest or last - hold.begin > LONGEST:
                    found.append(Violation(f'after {hold.cause}', late, longest, last))
                    continue
                gone += np.linalg.norm(move.tool) * limits.period
                if gone > most:
                    found.append(Violation('stop distance', gone, most, move.command.time))
                if speed > SLOW:
                    progress += move.tool @ start / speed * limits.period
                    farthest = max(farthest, progress)
                    if farthest - progress > BACK:
                        back = farthest - progress
                        found.append(Violation('stop backwards', back, BACK, move.command.time))
        return found

    def _executed(self, commands, last, record):
        """Find motion that is too fast when controllers carry out commands after ``last``."""
        most, found = EXECUTED * self._limits.speed, []
        first = commands[0]
        if self._by_velocity:
            starts = [np.zeros_like(first.values)]
        elif first.time <= record.judged:
            starts = [first.values]
        else:
            starts = self._begun(record, first.time, np.inf)[-1:]
            if self._goes_on(record, last, first.time):
                starts.append(last.values)  # as for single commands: it may begin at either
        for name, carry_out in CARRIED_OUT.items():
            fastest = (self._fastest(commands, start, carry_out, record) for start in starts)
            speed, when = min(fastest)
            if speed > most:
                found.append(Violation(f'carried out ({name})', speed, most, when))
        return found

    def _fastest(self, commands, start, carry_out, record):
        """Return the largest speed of the tool when commands are carried out, and its time."""
        window, first = max(SHORTEST, 5.0 * self._limits.period), commands[0]
        times, values = carry_out(commands, start, self._by_velocity)
        if self._output == 'joint_velocity':
            values = values + _at(record.measured, first.time)
        tools = self._placed(values) if self._of_joints else values
        step = round(window / (times[1] - times[0]))
        speeds = np.linalg.norm(tools[step:] - tools[:-step], axis=1) / window
        speeds[times[step:] <= record.judged] = 0.0
        if not len(speeds):
            return 0.0, first.time
        return speeds.max(), times[step + speeds.argmax()]

    def _beyond(self, tool):
        """Return how far outside its box the tool is; inside, it is below 0 [m]."""
        low, high = self._limits.box
        return float(max(np.max(low - tool), np.max(tool - high)))

    def _tools(self, commands):
        return self._placed([command.values for command in commands])

    def _placed(self, values):
        return self._arm.tool(np.array(values)) if self._of_joints else np.array(values)

    def _goes_on(self, record, last, time):
        """Return whether a motion may begin where the last command left off."""
        if last is None or time - last.time < RECENT[1]:
            return last is not None
        begun = np.array(self._begun(record, time, np.inf))
        since = [joints for when, joints in record.measured if last.time + RESTED < when <= time]
        joint, tool = NEAR
        if since and np.ptp(since, axis=0).max() <= MOVED:
            joint, tool = SAGGING
        if self._output == 'pose':
            return np.linalg.norm(begun - last.values, axis=1).min() <= tool
        return np.abs(begun - last.values).max(axis=1).min() <= joint

    def _begun(self, record, time, gap):
        """Return where a motion may begin: where the arm was seen since the last command."""
        since = time - min(SETTLED, gap)
        seen = [joints for when, joints in record.measured if since < when <= time]
        seen = seen or [_at(record.measured, time)]
        return list(self._arm.tool(np.array(seen))) if self._output == 'pose' else seen


class _Move:
    """
    What one command asks for, under one or more assumptions of where the arm was before.

    Of those that may hold, the one that is best for whoever commanded it counts.
    """

    def __init__(self, command, tools, joints, changes, joint_changes, out=0.0):
        """Velocities ``tools`` (3,) and ``joints`` (k,), and by how much they change."""
        self.out = out
        """How much farther out of its box the tool is sent than it was [m]."""
        self.command, self.tools, self.joints = command, tools, joints
        self._changes, self._joint_changes = changes, joint_changes
        self.tool = min(tools, key=np.linalg.norm)

    def tool_speed(self):
        return np.linalg.norm(self.tool)

    def tool_change(self):
        return min(np.linalg.norm(change) for change in self._changes)

    def joint_speed(self, limits):
        return min(np.abs(joint / limits).max() for joint in self.joints)

    def joint_change(self, limits):
        return min(np.abs(change / limits).max() for change in self._joint_changes)


def _motions(commands):
    """Split commands where a motion may have begun elsewhere than where the last left off."""
    begins = [
        number
        for number in range(1, len(commands))
        if commands[number].time - commands[number - 1].time > RECENT[0]
    ]
    pairs = zip([0, *begins], [*begins, len(commands)], strict=True)
    return [commands[begin:end] for begin, end in pairs]


def _changes(velocities, before, rests):
    """Return the changes from what was before, or from rest, to each of the velocities."""
    changes = [one - other for one in velocities for other in before]
    return changes + (velocities if rests else [])


def _is_unsure(moves, command, record):
    """
    Return whether the sender cannot know if the arm rests before a command.

    Who was held while sending the last command cannot know when it left: maybe just after the one
    before it. If that is long ago, to take the arm for one that rests is the safe guess: what
    follows is slow.
    """
    if len(moves) < 2:
        return False
    first, last = (move.command.time for move in moves[-2:])
    return command.time - first > PAUSE[0] and _held(record.frozen, first, last)


def _held(frozen, begin, end):
    """Return whether the process was kept from running for most of this time."""
    held = sum(max(0.0, min(end, last) - max(begin, first)) for first, last in frozen)
    return held > 0.5 * (end - begin)


def _at(measured, time):
    """Return where the arm was."""
    return measured[max(0, bisect.bisect(measured, time, key=lambda one: one[0]) - 1)][1]


def _below(kind, value, limit, time):
    """Return a violation of a lower limit, as a ratio above 1."""
    return Violation(kind, limit / max(value, 1e-9), 1.0, time)
