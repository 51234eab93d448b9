"""What commands for running nodes have in common."""

from __future__ import annotations

import argparse
import os
import sys

from mher_ros.cli.exit_codes import FAILED
from mher_ros.errors import ArmError
from mher_ros.ros.bringup.processes import require_rclpy
from mher_ros.ros.bringup.system import check_name, defaults_for_nodes

__all__ = ['call', 'declare_namespace', 'prepare_ros']


def declare_namespace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--namespace', default='', metavar='NAME', help='namespace of policy_node (default none)'
    )


def prepare_ros(namespace: str) -> None:
    """Meet the nodes that `mher up` starts; MherError if there is no ROS for this Python."""
    if namespace:
        check_name('--namespace', namespace)
    require_rclpy()
    os.environ.update(defaults_for_nodes())


def call(namespace: str, service: str) -> int:
    """Call a service of policy_node, print the answer, and return the exit code."""
    prepare_ros(namespace)
    from mher_ros.ros.policy_calls import call_policy_node

    try:
        print(call_policy_node(namespace, service))
    except ArmError as error:
        print(f'mher: {error}', file=sys.stderr)
        return FAILED
    return 0
