"""``mher goal``."""

from __future__ import annotations

import argparse
import sys

from mher_ros.cli.argument_types import finite
from mher_ros.cli.exit_codes import FAILED
from mher_ros.cli.ros_arguments import declare_namespace, prepare_ros
from mher_ros.errors import ArmError

SUMMARY = 'send the tool of an arm to a goal'
WAIT = 60.0
"""Default time to wait until the tool is there [s]."""


def declare(parser: argparse.ArgumentParser) -> None:
    for axis in 'XYZ':
        parser.add_argument(axis.lower(), metavar=axis, type=finite, help='[m]')
    parser.add_argument(
        '--frame', default='', help="frame of the goal (default: that of the arm's base)"
    )
    parser.add_argument(
        '--wait',
        nargs='?',
        type=finite,
        const=WAIT,
        default=0.0,
        metavar='SECONDS',
        help="wait until the tool is within the policy's threshold of the goal, at most SECONDS "
        f'({WAIT:g} if none are given); it may still be moving then',
    )
    declare_namespace(parser)
    parser.epilog = (
        'Needs a policy_node, as `mher up deploy_sim` starts it. Ends with 1 if the goal is not '
        'accepted, or not reached. Ctrl-C ends only the waiting; `mher stop` stops the arm.'
    )


def run(chosen: argparse.Namespace) -> int:
    prepare_ros(chosen.namespace)
    from mher_ros.ros.policy_calls import send_goal

    try:
        goal = (chosen.x, chosen.y, chosen.z)
        for line in send_goal(chosen.namespace, chosen.frame, goal, chosen.wait):
            print(line, flush=True)
    except ArmError as error:
        print(f'mher: {error}', file=sys.stderr)
        return FAILED
    return 0
