"""``mher stop``."""

from __future__ import annotations

import argparse

from mher_ros.cli.ros_arguments import call, declare_namespace

SUMMARY = 'stop an arm until `mher clear`'


def declare(parser: argparse.ArgumentParser) -> None:
    declare_namespace(parser)
    parser.epilog = "It is no replacement for the arm's emergency stop."


def run(chosen: argparse.Namespace) -> int:
    return call(chosen.namespace, 'stop')
