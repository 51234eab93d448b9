"""Measures how long the safety filter takes for one command, for random motions."""

import argparse
import json
import time

from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import JointVelocities, ToolVelocity
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.reach_options import ReachOptions
import numpy as np

HELD = 20
"""Commands for which a motion is asked for."""


class RandomMotions:
    """Asks for one random motion after the other; it is never there."""

    def __init__(self, kind, size, most, seed=0):
        self._kind, self._size, self._most = kind, size, most
        self._random, self._asked = np.random.default_rng(seed), 0

    def begin(self, now):
        pass

    def ask(self, now):
        if self._asked % HELD == 0:
            values = self._random.uniform(-self._most, self._most, self._size)
            self._motion = self._kind(values)
        self._asked += 1
        return self._motion

    def progress(self, tool):
        return 0.0, 0.0


def measure(robot, kind, commands):
    """Return times of the filter's share of a command [ms]."""
    task = Reach(ReachOptions(robot=robot))
    size, most = (3, 0.5) if kind is ToolVelocity else (len(task.arm.joint_names), 1.5)
    box = task.workspace.box_low, task.workspace.box_high
    path = CommandPath(RandomMotions(kind, size, most), task.arm, box, 'joint_position')
    path.makes_ahead = False
    positions, times = task.joint_state()[0], []

    def timed(function):
        def call(*arguments):
            started = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                times[-1] += 1e3 * (time.perf_counter() - started)

        return call

    for name in ('prepare', 'advance', 'brake'):
        setattr(path.filter, name, timed(getattr(path.filter, name)))
    for step in range(commands):
        now = step * path.period
        path.take_state(now, round(now * 1e9), positions, np.zeros_like(positions))
        if step % 1000 == 0:
            path.monitor.take_goal(now)
        times.append(0.0)
        command = path.tick(now)
        positions = positions if command is None else command.joint_positions
    return np.array(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--robots', default='fetch,sawyer,ur5e,panda')
    parser.add_argument('--commands', type=int, default=5000)
    options = parser.parse_args()
    for robot in options.robots.split(','):
        for kind in (ToolVelocity, JointVelocities):
            times = measure(robot, kind, options.commands)
            figures = {'median_ms': np.median(times), 'p99_ms': np.percentile(times, 99)}
            figures |= {'longest_ms': times.max()}
            rounded = {key: round(float(value), 3) for key, value in figures.items()}
            print(json.dumps({'robot': robot, 'asked': kind.__name__, **rounded}))


if __name__ == '__main__':
    main()
