"""``mher up``, ``goal``, ``stop``, ``clear`` and ``demo``: start nodes, or send to them."""

import argparse
from functools import partial
import os
from pathlib import Path
import sys

from mher_ros.cli.arguments import argument, Command, FAILED, finite, option, seed
from mher_ros.errors import ArmError
from mher_ros.options import read_changes
from mher_ros.robots.workspace import GoalError
from mher_ros.ros.bringup.bringups import BRINGUPS, make_bringup
from mher_ros.ros.bringup.node_spec import argument_rows, check_name, defaults_for_nodes
from mher_ros.ros.bringup.processes import require_rclpy

SHOW = ('-s', '--show-args', '-h', '--help')
WAIT = 60.0  # default of --wait [s]
NAMESPACE = argument('--namespace', 'namespace of the arm (default: none)', default='')


def _up(chosen: argparse.Namespace) -> int:
    if chosen.bringup is None:
        for name, bringup in BRINGUPS.items():
            print(f'{name:<12} {bringup.summary}')
        return 0
    if set(SHOW) & set(chosen.arguments):
        made = make_bringup(chosen.bringup, {})
        print(f'{chosen.bringup}: {made.summary}\n\nArguments, with their defaults:')
        for row in argument_rows(made):
            print(f'  {row["name"] + ":=" + row["default"]:<22} {row["help"]}')
            if row['choices']:
                print(f'  {"":<22} (one of {", ".join(row["choices"])})')
        return 0
    from mher_ros.ros.bringup.processes import run_bringup

    return run_bringup(chosen.bringup, read_changes(chosen.arguments, chosen.bringup, ':='))


def _demo(chosen: argparse.Namespace) -> int:
    from mher_ros.tasks.rendering import choose_backend

    choose_backend()
    from mher_ros.demo import run_demo

    return run_demo(Path(chosen.out), chosen.seed, chosen.view)


def _ask_policy_node(service: str, chosen: argparse.Namespace) -> int:
    """Send a goal, or call a service of the nodes that move the arm, and print the result."""
    if chosen.namespace:
        check_name('--namespace', chosen.namespace)
    require_rclpy()
    # The environment of the nodes that `mher up` starts.
    os.environ.update(defaults_for_nodes())
    from mher_ros.ros.deploy.goal_client import call_arm_nodes, send_goal

    try:
        if service == 'goal':
            goal = (chosen.x, chosen.y, chosen.z)
            for line in send_goal(chosen.namespace, chosen.frame, goal, chosen.wait):
                print(line, flush=True)
        else:
            print(call_arm_nodes(chosen.namespace, service))
    except (ArmError, GoalError) as error:
        print(f'mher: {error}', file=sys.stderr)
        return FAILED
    return 0


UP = Command(
    'start several nodes together (a bringup), as `ros2 launch` does, without a ROS installation',
    _up,
    (
        argument(
            'bringup',
            'name of the bringup; without it, all are listed',
            metavar='BRINGUP',
            nargs='?',
        ),
        argument(
            'arguments',
            'arguments of the bringup; --show-args lists them',
            metavar='NAME:=VALUE',
            nargs=argparse.REMAINDER,
        ),
    ),
    'The command ends when the main node ends, with its exit code. It ends with 1 if a required\n'
    'node ends first. Ctrl-C stops the main node, which may save its work, and then the others.\n'
    'A second Ctrl-C, at least a second later, ends them at once. No process remains.\n'
    '\n'
    'Nodes communicate only within this machine and this ROS_DOMAIN_ID. To reach a driver on\n'
    'another machine, set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both machines.',
)
GOAL = Command(
    'send the tool of an arm to a goal',
    partial(_ask_policy_node, 'goal'),
    (
        *(argument(axis.lower(), 'goal [m]', metavar=axis, type=finite) for axis in 'XYZ'),
        argument('--frame', 'frame of the goal (default: the base frame of the arm)', default=''),
        argument(
            '--wait',
            "wait until the tool is within the policy's threshold of the goal, at most "
            f'SECONDS (default {WAIT:g}); it may still be moving then',
            nargs='?',
            type=finite,
            const=WAIT,
            default=0.0,
            metavar='SECONDS',
        ),
        NAMESPACE,
    ),
    'Needs a running policy_node; `mher up deploy_sim` starts one. The exit code is 1 if the goal '
    'is not accepted or not reached. Ctrl-C ends only the waiting; `mher stop` stops the arm.',
)
STOP = Command(
    'stop an arm: policy_node brakes it until `mher clear`; train_node brakes it and ends',
    partial(_ask_policy_node, 'stop'),
    (NAMESPACE,),
    'It takes a second or more, and needs the ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and '
    'namespace of policy_node or train_node. It does not replace the emergency stop of the arm.',
)
CLEAR = Command(
    'end the stop of an arm; the next goal moves it again',
    partial(_ask_policy_node, 'clear'),
    (NAMESPACE,),
)
DEMO = Command(
    'train a Fetch arm over topics, deploy the policy, send goals, draw the results',
    _demo,
    (
        option('--out', 'demo_run', 'folder of the results; an earlier demo in it is replaced'),
        option('--seed', 0, 'seed of training and goals', type=seed),
        argument('--view', 'also show it in a browser; print the address', action='store_true'),
    ),
)
