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
from mher_ros.cli.exit_codes import FAILED, INTERRUPTED

SUMMARY = 'measure, against a rival in the same run where there is one'

ALL = 'all of these, one after the other, into a page'
KEPT = Path('runs') / 'bench'
PAGE = KEPT / 'benchmarks.md'


class Benchmark(NamedTuple):
    """A module of ``mher_ros.bench`` with a function ``measure`` of these arguments."""

    summary: str
    takes: str
    """How long, with its defaults, on two cores that have nothing else to do."""
    arguments: Mapping[str, dict[str, Any]]


def _rounds(default: int) -> dict[str, Any]:
    return {
        'type': positive,
        'default': default,
        'metavar': 'N',
        'help': f'times that each rival takes its turn (default {default})',
    }


SEED = {'type': seed, 'default': 0, 'help': 'of training, and of goals (default 0)'}
POLICY = {
    'metavar': 'FILE',
    'help': 'policy file (default: one is trained, once, below runs/deploy)',
}
BENCHMARKS = {
    'learning': Benchmark(
        'steps and time until fetch_reach is learnt, against stable-baselines3',
        'an hour',
        {
            'seeds': {
                'type': seeds,
                'default': '11-15',
                'metavar': 'N',
                'help': 'how many, or which (1-5; 1,2,7) (default 11-15)',
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
                'help': 'of mher_fast, mher_paper, her_fast, sb3_sac, sb3_ddpg, '
                'sb3_sac_our_pace, sb3_ddpg_our_pace (default: all)',
            },
        },
    ),
    'step': Benchmark(
        'steps of fetch_reach against those of the shipped one; 100 goals against a plain loop',
        '3 minutes',
        {'rounds': _rounds(15)},
    ),
    'update': Benchmark(
        "one gradient update of mher and of her against one of stable-baselines3's DDPG+HER",
        'a minute',
        {'rounds': _rounds(40)},
    ),
    'bridge': Benchmark(
        'steps of fetch_reach behind ROS topics against those in one process and bare messages',
        'a minute',
        {
            'steps': {
                'type': positive,
                'default': 10_000,
                'metavar': 'N',
                'help': 'steps of each, at least 4000 (default 10000)',
            }
        },
    ),
    'latency': Benchmark(
        'from a joint state to its command, against a node that only answers',
        '4 minutes',
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
    'page': Benchmark(
        'what the page in the browser costs policy_node',
        '3 minutes',
        {
            'seconds': {
                'type': positive,
                'default': 10,
                'metavar': 'N',
                'help': 'of each turn (default 10)',
            },
            'rounds': _rounds(5),
            'seed': SEED,
            'policy': POLICY,
        },
    ),
    'scale': Benchmark(
        'how updates, memory, evaluation and training grow with what one may choose',
        '3 minutes',
        {
            'rounds': _rounds(20),
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
        '6 minutes',
        {
            'robot': {
                'default': 'fetch',
                'help': 'a name in config/robots, or a YAML file (default fetch)',
            },
            'goals': {
                'type': positive,
                'default': 100,
                'metavar': 'N',
                'help': 'that the arm is sent to (default 100)',
            },
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
        summary = f'{benchmark.summary} (about {benchmark.takes} on two quiet cores)'
        one = parsers.add_parser(name, help=summary, description=summary)
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
    summary = f'{ALL} (about an hour and a half on two quiet cores)'
    together = parsers.add_parser('all', help=summary, description=summary)
    together.add_argument(
        '--page',
        type=Path,
        default=PAGE,
        metavar='FILE',
        help='Markdown that the findings are written into, between its two marks, or that is '
        f'made (default {PAGE})',
    )
    together.add_argument(
        '--out',
        type=Path,
        default=KEPT,
        metavar='DIR',
        help=f'where JSON and pictures are written (default {KEPT})',
    )
    together.add_argument(
        '--missing', action='store_true', help='measure only what DIR does not hold yet'
    )


def run(chosen: argparse.Namespace) -> int:
    from mher_ros.bench import measured

    measured.make_folder(chosen.out)
    if chosen.what == 'all':
        return _all(chosen.page, chosen.out, chosen.missing)
    arguments = {name: getattr(chosen, name) for name in BENCHMARKS[chosen.what].arguments}
    try:
        module = importlib.import_module(f'mher_ros.bench.{chosen.what}')
        found = module.measure(**arguments)
    except ModuleNotFoundError as error:
        if not _is_of_ros(error.name or ''):
            raise
        raise measured.BenchError(
            f'{chosen.what} needs ROS, and {error.name} was not found: source a ROS 2 '
            'installation, or use the environment that `make venv` creates'
        ) from error
    values = measured.to_dict(chosen.what, found, arguments)
    interrupted = bool(found.figures.get('interrupted'))
    # Beside what a whole run has left, not over it.
    name = f'{chosen.what}.partial' if interrupted else chosen.what
    path = measured.write(name, values, found.picture, chosen.out)
    if chosen.json:
        print(json.dumps(values, allow_nan=False))
    else:
        print(f'{measured.text(found)}\n\n{path}')
    return INTERRUPTED if interrupted else 0


def _is_of_ros(module: str) -> bool:
    package = module.partition('.')[0]
    return package in ('rclpy', 'std_srvs') or package.endswith(('_msgs', '_interfaces'))


def _all(page: Path, folder: Path, only_missing: bool) -> int:
    from mher_ros.bench.document import write_document

    failed = []
    summaries = {name: benchmark.summary for name, benchmark in BENCHMARKS.items()}
    # Before anything is measured, too: a page that cannot be written is told of at once.
    write_document(page, folder, summaries)
    for number, name in enumerate(BENCHMARKS, 1):
        kept = folder / f'{name}.json'
        if only_missing and kept.exists():
            continue
        print(f'=== {name} ({number} of {len(BENCHMARKS)})', flush=True)
        # If it fails, what was found another time must not pass for what was found now.
        kept.unlink(missing_ok=True)
        # A process each: none finds the threads, caches and core that another has left.
        command = [sys.executable, '-m', 'mher_ros', 'bench', name, '--out', str(folder)]
        with subprocess.Popen(command) as process:
            try:
                if process.wait():
                    failed.append(name)
            except KeyboardInterrupt:
                _let_it_end(process)
                write_document(page, folder, summaries)
                return INTERRUPTED
        write_document(page, folder, summaries)
    print(f'page: {page}')
    if failed:
        print(f'mher: failed: {", ".join(failed)}', file=sys.stderr)
    return FAILED if failed else 0


def _let_it_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process that Ctrl-C has reached as well; the next one kills it."""
    try:
        process.wait()
    except KeyboardInterrupt:
        process.kill()
