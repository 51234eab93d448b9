"""``mher evaluate``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from mher_ros.cli.argument_types import positive, seed

SUMMARY = 'try a policy file on random goals'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('policy', metavar='POLICY.onnx')
    parser.add_argument('--episodes', type=positive, default=100, help='goals (default 100)')
    parser.add_argument('--seed', type=seed, default=0, help='of the goals (default 0)')
    parser.add_argument('--workers', type=positive, help='threads (default: cores, 1 for point2d)')
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def run(chosen: argparse.Namespace) -> None:
    from mher_ros.policy import load
    from mher_ros.policy.evaluation import evaluate_policy, evaluation_lines

    policy = load(Path(chosen.policy))
    result = evaluate_policy(policy, chosen.episodes, chosen.seed, chosen.workers)
    if chosen.json:
        print(json.dumps(result))
    else:
        print('\n'.join(evaluation_lines(result)))
