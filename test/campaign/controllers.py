"""
Controllers that carry commands out: what an arm does that gets them.

Each function takes commands, where the arm is before the first (or its velocity), and whether they
are velocities; it returns times (N,) [s] and what the arm does then (N, k): positions in either
case, those of velocities relative to the start.
"""

import numpy as np

STEP = 0.002
"""Cycle of a controller [s]."""
AFTER = 0.3
"""How long after the last command the motion is looked at [s]."""
LAG = 0.1
"""Time constant of a slow arm [s]."""
WATCHDOG = 0.1
"""Time after which an arm that is told velocities stops without another one [s]."""


def immediately(commands, start, by_velocity):
    """As forward_command_controller: a command counts from the next cycle on."""
    times, which = _cycles(commands)
    values = np.array([start, *(command.values for command in commands)])
    if not by_velocity:
        return times, values[which + 1]
    return times, _integrated(_watched(times, which, commands, values))


def by_replacement(commands, start, by_velocity):
    """
    As joint_trajectory_controller: a message replaces what was left of the one before.

    It interpolates from its desired state to the point.
    """
    if by_velocity:
        return immediately(commands, start, by_velocity)
    times, which = _cycles(commands)
    result = np.empty((len(times), len(start)))
    result[which < 0] = start
    begin = np.array(start, float)
    ends = [*(command.time for command in commands[1:]), np.inf]
    for number, (command, end) in enumerate(zip(commands, ends, strict=True)):
        seconds = max(command.seconds, STEP)
        rows = which == number
        part = np.clip((times[rows] - command.time) / seconds, 0.0, 1.0)[:, None]
        result[rows] = begin + part * (command.values - begin)
        begin = begin + min(1.0, (end - command.time) / seconds) * (command.values - begin)
    return times, result


def with_lag(commands, start, by_velocity):
    """As a slow arm does: it nears what it is told, by a first-order lag."""
    times, which = _cycles(commands)
    values = np.array([start, *(command.values for command in commands)])
    told = _watched(times, which, commands, values) if by_velocity else values[which + 1]
    result, now = np.empty_like(told), np.array(start, float)
    part = 1.0 - np.exp(-STEP / LAG)
    for row, target in enumerate(told):
        now = now + part * (target - now)
        result[row] = now
    return times, _integrated(result) if by_velocity else result


CARRIED_OUT = {'immediate': immediately, 'JTC': by_replacement, 'lag': with_lag}


def _cycles(commands):
    """Return the times of cycles, and which command counts in each (-1: none yet)."""
    first, last = commands[0].time, commands[-1].time
    times = np.arange(first - 2 * STEP, last + AFTER, STEP)
    came = [command.time for command in commands]
    return times, np.searchsorted(came, times, side='right') - 1


def _watched(times, which, commands, values):
    """Return the velocity in each cycle, 0 where the last command is too old."""
    came = np.array([-np.inf, *(command.time for command in commands)])
    is_old = times - came[which + 1] > WATCHDOG
    return np.where(is_old[:, None], 0.0, values[which + 1])


def _integrated(velocities):
    return np.cumsum(velocities * STEP, axis=0)
