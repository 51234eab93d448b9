"""
What arms were commanded in a fixed story, as it was recorded.

``python test/shared/arms/recorded_commands.py`` records it again: only where commands are meant to
change, and with a reason in the commit.
"""

from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parent))

from command_path_arm import CommandPathArm, TICK
from mher_ros.robots.outputs import OUTPUTS
import numpy as np

PATH = Path(__file__).parents[2] / 'control' / 'recorded_commands.npz'
TASKS = {
    'fetch': 'fetch_reach',
    'sawyer': 'sawyer_reach',
    'ur5e': 'fetch_reach',
    'panda': 'fetch_reach',
}
CASES = [(name, output) for name in TASKS for output in OUTPUTS]
EVERY = 5
"""Commands of which one is kept."""


def told(name, output):
    """Return commands (N, 6 or 6 + 2 k): of the tool, and of joints where these are commanded."""
    arm = CommandPathArm(output, name, TASKS[name])
    random, space = np.random.default_rng(5), arm.workspace
    low, high = np.maximum(space.low, space.box_low), np.minimum(space.high, space.box_high)
    arm.rest()

    def go(ticks, seconds=TICK):
        arm.controller.take_goal(arm.now, random.uniform(low, high))
        arm.run(ticks, seconds)

    go(120)
    go(60, 0.008)  # states come early
    go(60)  # replaces the goal on the way
    arm.monitor.stop('a story')
    arm.run(10)
    arm.monitor.clear()
    go(80)  # sets out before the arm is at rest
    arm.pass_time(0.05)  # late
    arm.run(20)
    for _ in range(15):  # no states
        arm.pass_time(TICK)
        arm.answer()
    arm.run(60)
    arm.monitor.drop_goal('the end')
    arm.brake()
    return np.array([_row(command) for _, command in arm.commands[::EVERY]])


def _row(command):
    parts = (command.tool_position, command.tool_velocity)
    joints = (command.joint_positions, command.joint_velocities)
    return np.concatenate([*parts, *(part for part in joints if part is not None)])


def main():
    rows = {f'{name} {output}': told(name, output) for name, output in CASES}
    np.savez_compressed(PATH, **{case: np.round(row, 9) for case, row in rows.items()})
    print(f'{PATH}: {len(rows)} cases, {PATH.stat().st_size // 1024} KiB')


if __name__ == '__main__':
    main()
