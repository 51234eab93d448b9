"""``mher up``."""

from __future__ import annotations

import argparse

from mher_ros.options import read_changes
from mher_ros.ros.bringup.system import argument_rows
from mher_ros.ros.bringup.systems import make_system, SYSTEMS

SUMMARY = 'start nodes that belong together, as `ros2 launch` does, without a ROS installation'
SHOW = ('-s', '--show-args', '-h', '--help')


def declare(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument('system', metavar='SYSTEM', nargs='?', help='none: list them')
    parser.add_argument(
        'arguments',
        metavar='NAME:=VALUE',
        nargs=argparse.REMAINDER,
        help='arguments of the system; --show-args lists them',
    )
    parser.epilog = (
        'Ends when the main node ends, with its exit code, and with 1 when a node that is\n'
        'needed ends first. Ctrl-C asks the main node to stop, which gives it time to save its\n'
        'work, and then the others; again, after a second, is firmer. No process stays behind.\n'
        '\n'
        'Nodes meet those of this machine only, and of this ROS_DOMAIN_ID. To reach an arm whose\n'
        'driver runs on another one, set ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET on both.'
    )


def run(chosen: argparse.Namespace) -> int:
    if chosen.system is None:
        for name, system in SYSTEMS.items():
            print(f'{name:<12} {system.summary}')
        return 0
    if set(SHOW) & set(chosen.arguments):
        print('\n'.join(_argument_lines(chosen.system)))
        return 0
    from mher_ros.ros.bringup.processes import run_system

    return run_system(chosen.system, read_changes(chosen.arguments, chosen.system, ':='))


def _argument_lines(name: str) -> list[str]:
    system = make_system(name, {})
    lines = [f'{name}: {system.summary}', '', 'Arguments, with their defaults:']
    for row in argument_rows(system):
        lines.append(f'  {row["name"] + ":=" + row["default"]:<22} {row["help"]}')
        if row['choices']:
            lines.append(f'  {"":<22} (one of {", ".join(row["choices"])})')
    return lines
