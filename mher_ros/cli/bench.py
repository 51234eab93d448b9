"""``mher bench``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mher_ros.cli.argument_types import positive

SUMMARY = 'measure against a rival in the same run'


def declare(parser: argparse.ArgumentParser) -> None:
    said = '; '.join(f'{name}: {text}' for name, (text, _) in BENCHMARKS.items())
    parser.add_argument('what', choices=list(BENCHMARKS), help=said)
    parser.add_argument(
        '--steps',
        type=positive,
        default=10_000,
        metavar='N',
        help='bridge: steps of each (default 10000)',
    )
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def run(chosen: argparse.Namespace) -> None:
    _, measure = BENCHMARKS[chosen.what]
    result, lines = measure(chosen.steps)
    print(json.dumps(result) if chosen.json else '\n'.join(lines))


def _step(steps: int) -> tuple[dict[str, Any], list[str]]:
    from mher_ros.experiments.bench_step import bench_lines, bench_step

    result = bench_step()
    return result, bench_lines(result)


def _bridge(steps: int) -> tuple[dict[str, Any], list[str]]:
    from mher_ros.experiments.bench_bridge import bench_bridge, bridge_lines

    result = bench_bridge(steps)
    return result, bridge_lines(result)


BENCHMARKS = {
    'step': ('fetch_reach and the shipped one', _step),
    'bridge': ('fetch_reach behind ROS topics and in one process', _bridge),
}
"""Name to (what is compared, function that returns the figures and lines for people)."""
