"""``mher stop``."""

from __future__ import annotations

import argparse

from mher_ros.cli.ros_arguments import call, declare_namespace

SUMMARY = 'stop an arm until `mher clear`'


def declare(parser: argparse.ArgumentParser) -> None:
    declare_namespace(parser)
    parser.epilog = (
        'It takes a second or more, and needs the ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE '
        "and namespace of policy_node. It is no replacement for the arm's emergency stop."
    )


def run(chosen: argparse.Namespace) -> int:
    return call(chosen.namespace, 'stop')
