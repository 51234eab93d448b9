"""``mher clear``."""

from __future__ import annotations

import argparse

from mher_ros.cli.ros_arguments import call, declare_namespace

SUMMARY = 'end the stop of an arm; it moves with the next goal'


def declare(parser: argparse.ArgumentParser) -> None:
    declare_namespace(parser)


def run(chosen: argparse.Namespace) -> int:
    return call(chosen.namespace, 'clear')
