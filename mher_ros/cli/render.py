"""``mher render``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mher_ros.cli.argument_types import positive, seed

SUMMARY = 'film a policy, with or without a screen'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('policy', metavar='POLICY.onnx')
    parser.add_argument(
        '-o', '--out', default='policy.gif', help='a .gif, .mp4 or .png file (default policy.gif)'
    )
    parser.add_argument('--goals', type=positive, default=3, help='goals shown (default 3)')
    parser.add_argument('--seed', type=seed, default=0, help='of the goals (default 0)')


def run(chosen: argparse.Namespace) -> None:
    from mher_ros.tasks.rendering import choose_backend

    choose_backend()
    from mher_ros.policy import load
    from mher_ros.policy.film import film_policy

    print(film_policy(load(Path(chosen.policy)), Path(chosen.out), chosen.goals, chosen.seed))
