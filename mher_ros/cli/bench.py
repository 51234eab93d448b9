"""``mher bench``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
import importlib
import json
from pathlib import Path
import subprocess
import sys
from typing import Any, NamedTuple

from mher_ros.cli.argument_types import names, positive, positives, seed, seeds
from mher_ros.cli.exit_codes import FAILED

SUMMARY = 'measure, against a rival in the same run where there is one'

ALL = 'all of these, one after the other, into a page'
PAGE, FOLDER = Path('docs') / 'benchmarks.md', Path('docs') / 'benchmarks'
KEPT = Path('runs') / 'bench'


class Benchmark(NamedTuple):
    """A module of ``mher_ros.bench`` with a function ``measure`` of these arguments."""

    summary: str
    arguments: Mapping[str, dict[str, Any]]


SEED = {'type': seed, 'default': 0, 'help': 'of training, and of goals (default 0)'}
POLICY = {
    'metavar': 'FILE',
    'help': 'policy file (default: one is trained, once, below runs/deploy)',
}
BENCHMARKS = {
    'learning': Benchmark(
        'steps and time until fetch_reach is learnt, against stable-baselines3',
        {
            'seeds': {
                'type': seeds,
                'default': '5',
                'metavar': 'N',
                'help': 'how many, or which (1-5; 1,2,7) (default 5)',
            },
            'limit': {
                'type': positive,
                'default': 20_000,
                'metavar': 'N',
                'help': 'steps after which a run is given up (default 20000)',
            },
            'systems': {
                'type': names,
                'metavar': 'A,B',
                'help': 'which learn (default: all)',
            },
        },
    ),
    'step': Benchmark(
        'steps of fetch_reach against those of the shipped one; 100 goals against a plain loop', {}
    ),
    'update': Benchmark(
        "one gradient update of mher and of her against one of stable-baselines3's DDPG+HER",
        {'rounds': {'type': positive, 'default': 40, 'metavar': 'N', 'help': 'default 40'}},
    ),
    'bridge': Benchmark(
        'steps of fetch_reach behind ROS topics against those in one process and bare messages',
        {
            'steps': {
                'type': positive,
                'default': 10_000,
                'metavar': 'N',
                'help': 'steps of each (default 10000)',
            }
        },
    ),
    'latency': Benchmark(
        'from a joint state to its command, against a node that only answers',
        {
            'seconds': {
                'type': positive,
                'default': 10,
                'metavar': 'N',
                'help': 'of each output, rate and load (default 10)',
            },
            'rates': {
                'type': positives,
                'default': [25, 100, 500],
                'metavar': 'HZ,...',
                'help': 'joint states a second (default 25,100,500)',
            },
            'load': {
                'choices': ('both', 'without', 'with'),
                'default': 'both',
                'help': 'with or without every core kept busy beside it (default both)',
            },
            'seed': SEED,
            'policy': POLICY,
        },
    ),
    'scale': Benchmark(
        'how updates, memory, evaluation and training grow with what one may choose',
        {
            'rounds': {'type': positive, 'default': 20, 'metavar': 'N', 'help': 'default 20'},
            'axes': {
                'type': names,
                'metavar': 'A,B',
                'help': 'of replay, members, rollout, batch, goals, collecting, training '
                '(default: all)',
            },
        },
    ),
    'deploy': Benchmark(
        'a policy on a simulated arm: goals reached, error, time',
        {
            'robot': {
                'default': 'fetch',
                'help': 'a name in config/robots, or a YAML file (default fetch)',
            },
            'goals': {'type': positive, 'default': 100, 'metavar': 'N', 'help': 'default 100'},
            'output': {
                'default': 'robot',
                'help': "what the arm is told (default: what the robot's file says)",
            },
            'seed': SEED,
            'policy': POLICY,
        },
    ),
}


def declare(parser: argparse.ArgumentParser) -> None:
    parsers = parser.add_subparsers(required=True, metavar='WHAT', dest='what')
    for name, benchmark in BENCHMARKS.items():
        one = parsers.add_parser(name, help=benchmark.summary, description=benchmark.summary)
        for argument, choices in benchmark.arguments.items():
            one.add_argument(f'--{argument}', **choices)
        one.add_argument('--json', action='store_true', help='print one JSON object')
        one.add_argument(
            '--out',
            type=Path,
            default=KEPT,
            metavar='DIR',
            help=f'where {name}.json and its picture are written (default {KEPT})',
        )
    together = parsers.add_parser('all', help=ALL, description=ALL)
    together.add_argument(
        '--page', type=Path, default=PAGE, metavar='FILE', help=f'default {PAGE}'
    )
    together.add_argument(
        '--out', type=Path, default=FOLDER, metavar='DIR', help=f'default {FOLDER}'
    )
    together.add_argument(
        '--missing', action='store_true', help='measure only what DIR does not hold yet'
    )


def run(chosen: argparse.Namespace) -> int:
    if chosen.what == 'all':
        return _all(chosen.page, chosen.out, chosen.missing)
    from mher_ros.bench import measured

    module = importlib.import_module(f'mher_ros.bench.{chosen.what}')
    arguments = BENCHMARKS[chosen.what].arguments
    found = module.measure(**{name: getattr(chosen, name) for name in arguments})
    path = measured.write(chosen.what, found, chosen.out)
    if chosen.json:
        print(json.dumps(measured.to_dict(chosen.what, found)))
    else:
        print(f'{measured.text(found)}\n\n{path}')
    return 0


def _all(page: Path, folder: Path, only_missing: bool) -> int:
    from mher_ros.bench.document import write_document

    failed = []
    summaries = {name: benchmark.summary for name, benchmark in BENCHMARKS.items()}
    for number, name in enumerate(BENCHMARKS, 1):
        if only_missing and (folder / f'{name}.json').exists():
            continue
        print(f'=== {name} ({number} of {len(BENCHMARKS)})', flush=True)
        # A process each: none finds the threads, caches and core that another has left.
        command = [sys.executable, '-m', 'mher_ros', 'bench', name, '--out', str(folder)]
        if subprocess.run(command).returncode:
            failed.append(name)
        write_document(page, folder, summaries)
    print(f'page: {page}')
    if failed:
        print(f'mher: failed: {", ".join(failed)}', file=sys.stderr)
    return FAILED if failed else 0
