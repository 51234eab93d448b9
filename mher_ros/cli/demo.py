"""``mher demo``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mher_ros.cli.argument_types import seed

SUMMARY = 'train a Fetch arm over topics, deploy the policy, send goals, draw it all'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--out', default='demo_run', help='folder (default demo_run; made anew)')
    parser.add_argument('--seed', type=seed, default=0, help='default 0')
    parser.add_argument(
        '--view', action='store_true', help='show it all in a browser, at the address printed'
    )


def run(chosen: argparse.Namespace) -> int:
    from mher_ros.tasks.rendering import choose_backend

    choose_backend()
    from mher_ros.demo import run_demo

    return run_demo(Path(chosen.out), chosen.seed, chosen.view)
