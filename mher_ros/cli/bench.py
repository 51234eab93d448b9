"""``mher bench``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mher_ros.cli.argument_types import positive, seed

SUMMARY = 'measure, against a rival in the same run where there is one'

Measured = tuple[dict[str, Any], list[str]]
"""Figures, and the same as lines for people."""


def declare(parser: argparse.ArgumentParser) -> None:
    parsers = parser.add_subparsers(required=True, metavar='WHAT', dest='what')
    for name, (text, _) in BENCHMARKS.items():
        one = parsers.add_parser(name, help=text, description=text)
        one.add_argument('--json', action='store_true', help='print one JSON object')
        if name == 'bridge':
            one.add_argument(
                '--steps',
                type=positive,
                default=10_000,
                metavar='N',
                help='steps of each (default 10000)',
            )
        if name == 'deploy':
            _declare_deploy(one)
        if name == 'latency':
            one.add_argument(
                '--seconds', type=positive, default=30, metavar='N', help='default 30'
            )
        if name in ('deploy', 'latency'):
            one.add_argument(
                '--seed', type=seed, default=0, help='of training, and of goals (default 0)'
            )
            one.add_argument(
                '--policy',
                metavar='FILE',
                help='policy file (default: one is trained, once, below runs/deploy)',
            )


def run(chosen: argparse.Namespace) -> None:
    _, measure = BENCHMARKS[chosen.what]
    result, lines = measure(chosen)
    print(json.dumps(result) if chosen.json else '\n'.join(lines))


def _declare_deploy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--robot',
        default='fetch',
        help='a name in config/robots, or a YAML file (default fetch)',
    )
    parser.add_argument('--goals', type=positive, default=100, metavar='N', help='default 100')
    parser.add_argument(
        '--output',
        default='robot',
        help="what the arm is told (default: what the robot's file says)",
    )


def _step(chosen: argparse.Namespace) -> Measured:
    from mher_ros.experiments.bench_step import bench_lines, bench_step

    result = bench_step()
    return result, bench_lines(result)


def _bridge(chosen: argparse.Namespace) -> Measured:
    from mher_ros.experiments.bench_bridge import bench_bridge, bridge_lines

    result = bench_bridge(chosen.steps)
    return result, bridge_lines(result)


def _deploy(chosen: argparse.Namespace) -> Measured:
    from mher_ros.experiments.bench_deploy import bench_deploy, deploy_lines

    result = bench_deploy(chosen.robot, chosen.goals, chosen.seed, chosen.policy, chosen.output)
    return result, deploy_lines(result)


def _latency(chosen: argparse.Namespace) -> Measured:
    from mher_ros.experiments.bench_latency import bench_latency, latency_lines

    result = bench_latency(chosen.seconds, chosen.seed, chosen.policy)
    return result, latency_lines(result)


BENCHMARKS = {
    'step': ('steps of fetch_reach against those of the shipped one', _step),
    'bridge': ('steps of fetch_reach behind ROS topics against those in one process', _bridge),
    'latency': ('from a joint state to its command, against a node that only answers', _latency),
    'deploy': ('a policy on a simulated arm: goals reached, error, time', _deploy),
}
"""Name to (what is measured, function that measures it)."""
