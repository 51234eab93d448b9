"""``mher robot``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mher_ros.cli.exit_codes import FAILED
from mher_ros.tasks.rendering import choose_backend

SUMMARY = (
    "check an arm's robot file: limits, home, and which parts of the workspace the arm reaches"
)
TASK = 'fetch_reach'


def declare(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar='ACTION', dest='action')
    check = actions.add_parser('check', help=SUMMARY, description=SUMMARY)
    check.add_argument('robot', metavar='ROBOT', help='YAML file, or an arm that comes along')
    check.add_argument('--urdf', metavar='FILE', help='model, where it comes over a topic')
    check.add_argument(
        '--policy',
        metavar='FILE',
        help=f'whose workspace is checked; default: that of its task, else {TASK}',
    )
    check.add_argument('--picture', metavar='FILE', help='draw the arm and the workspace (PNG)')


def run(chosen: argparse.Namespace) -> int:
    choose_backend()
    from mher_ros.control.robot import load_robot
    from mher_ros.learning.config import make_config
    from mher_ros.policy.run import load
    from mher_ros.simulation.robot_check import check_robot, draw_check
    from mher_ros.tasks import make

    robot = load_robot(chosen.robot)
    if chosen.policy:
        interface = load(chosen.policy).interface
    else:
        task = robot.simulation_task or TASK
        interface = make(task, make_config(task).task).interface
    check = check_robot(robot, interface, Path(chosen.urdf) if chosen.urdf else None)
    print('\n'.join(check.lines()))
    if chosen.picture:
        draw_check(check, Path(chosen.picture))
        print(f'\nwritten: {chosen.picture}')
    return FAILED if check.problems else 0
