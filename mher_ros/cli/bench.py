"""``mher bench``."""

import argparse
from functools import partial
import importlib
import json
from pathlib import Path
import subprocess
import sys
from typing import NamedTuple

from mher_ros.cli import arguments
from mher_ros.cli.arguments import (
    Argument,
    argument,
    Command,
    FAILED,
    INTERRUPTED,
    JSON,
    option,
    Terminated,
)
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.ros.bringup.processes import require_rclpy

KEPT = Path('runs') / 'bench'
PAGE = KEPT / 'benchmarks.md'


class Benchmark(NamedTuple):
    """A module of ``mher_ros.bench`` with a function ``measure`` that takes these arguments."""

    summary: str
    takes: str  # its duration with default arguments, on two idle cores
    arguments: tuple[Argument, ...]
    keeps_runs: bool = False  # whether it takes a ``folder`` in which finished runs are kept


def _count(flag: str, default: int, text: str) -> Argument:
    return option(flag, default, text, type=arguments.positive, metavar='N')


def _rounds(default: int) -> Argument:
    return _count('--rounds', default, 'measurements of each variant, alternating')


SEED = option('--seed', 0, 'seed of random numbers', type=arguments.seed)
POLICY = argument('--policy', 'policy file (default: trained below runs/deploy)', metavar='FILE')
FRESH = argument(
    '--fresh', 'do not use the finished runs of earlier calls again', action='store_true'
)
CODE = argument(
    '--code',
    'version of the code, whose finished runs are used again (default: a digest of '
    'its source files)',
    default='',
    metavar='NAME',
)
BENCHMARKS = {
    'learning': Benchmark(
        'steps and time until a task is learnt, against stable-baselines3',
        'an hour',
        (
            option('--task', 'fetch_reach', 'task to learn'),
            argument('--robot', 'robot of the task: a name in config/robots, or a YAML file'),
            arguments.SET,
            arguments.seeds_argument('11-15'),
            _count('--limit', 20_000, 'environment steps after which a run ends'),
            argument(
                '--algorithms',
                'such as mher_fast,sb3_sac (default: all with settings for the task; an unknown '
                'name lists them)',
                type=arguments.names,
                metavar='A,B',
            ),
            FRESH,
            CODE,
        ),
        keeps_runs=True,
    ),
    'calibration': Benchmark(
        'reaching without calibration: a learnt policy against straight lines of a wrong model',
        'an hour',
        (
            option('--robot', 'fetch', 'a name in config/robots, or a YAML file'),
            argument(
                '--turns',
                'turns of the camera about the vertical axis [deg] (default 30,90,150)',
                type=arguments.positives,
                default=[30, 90, 150],
                metavar='DEG,...',
            ),
            arguments.SET,
            arguments.seeds_argument('11-13'),
            _count('--limit', 5000, 'environment steps after which a run ends'),
            _count('--goals', 100, 'number of goals of each line'),
            FRESH,
            CODE,
        ),
        keeps_runs=True,
    ),
    'skills': Benchmark(
        'policies of reach against a straight line: behind obstacles, at rest, on random plants',
        'three hours',
        (
            option('--robot', 'fetch', 'a name in config/robots, or a YAML file'),
            option(
                '--parts',
                'wall,box,pillars,rest,randomised',
                'what is measured, each with a policy of its own',
                type=arguments.names,
                metavar='A,B',
            ),
            _count('--goals', 100, 'number of goals; in scenes half of them behind obstacles'),
            _count('--steps', 15_000, 'environment steps of training'),
            SEED,
            argument('--policy', 'policy file for one part (default: trained)', metavar='FILE'),
            arguments.SET,
            CODE,
        ),
        keeps_runs=True,
    ),
    'step': Benchmark(
        'steps of fetch_reach against those of FetchReach-v4; 100 goals against a plain loop',
        '3 minutes',
        (_rounds(15),),
    ),
    'update': Benchmark(
        "one gradient update of mher and of her against one of stable-baselines3's DDPG+HER",
        'a minute',
        (_rounds(40),),
    ),
    'bridge': Benchmark(
        'steps of fetch_reach behind ROS topics against those in one process and bare messages',
        'a minute',
        (_count('--steps', 10_000, 'steps of each variant'),),
    ),
    'latency': Benchmark(
        'time from a joint state to its command, against nodes that only echo',
        '4 minutes',
        (
            _count('--seconds', 10, 'duration for each output, rate and load [s]'),
            argument(
                '--rates',
                'rates of joint states [Hz] (default 25,100,500)',
                type=arguments.positives,
                default=[25, 100, 500],
                metavar='HZ,...',
            ),
            SEED,
            POLICY,
        ),
    ),
    'deploy': Benchmark(
        'a policy on a simulated arm, against a straight line: goals reached, error, time',
        '6 minutes',
        (
            option('--robot', 'fetch', 'a name in config/robots, a YAML file, or all'),
            _count('--goals', 100, 'number of goals'),
            option(
                '--output',
                'robot',
                'type of the commands; robot: as the robot file says',
                choices=('robot', *(name for name in OUTPUTS if name != 'none')),
            ),
            option(
                '--controller',
                'both',
                'the policy, the baseline straight_line, or both with the same goals',
                choices=('both', 'policy', 'straight_line'),
            ),
            arguments.SET,
            SEED,
            POLICY,
        ),
    ),
    'collisions': Benchmark(
        'contacts of a simulated arm among random obstacles, with and without their avoidance',
        '7 minutes',
        (
            option('--robot', 'fetch', 'a name in config/robots, or a YAML file'),
            _count('--goals', 100, 'number of goals, and of motions without a goal, of each kind'),
            option(
                '--output',
                'robot',
                'type of the commands; robot: as the robot file says',
                choices=('robot', *(name for name, one in OUTPUTS.items() if one.of_joints)),
            ),
            argument(
                '--policy',
                'policy file (default: trained with the preset fast, and not kept)',
                metavar='FILE',
            ),
            argument(
                '--workers',
                'number of processes (default: the number of cores)',
                type=arguments.positive,
                default=0,
                metavar='N',
            ),
            argument(
                '--alone',
                'measure neither without collision avoidance nor with the collision limit of mink',
                action='store_true',
            ),
            SEED,
        ),
    ),
    'moving_obstacles': Benchmark(
        'who hits whom: a simulated arm and an obstacle that moves, with and without avoidance',
        '10 minutes',
        (
            option('--robot', 'fetch', 'a name in config/robots, or a YAML file'),
            _count('--goals', 100, 'number of goals'),
            option(
                '--output',
                'robot',
                'type of the commands; robot: as the robot file says',
                choices=('robot', *(name for name, one in OUTPUTS.items() if one.of_joints)),
            ),
            SEED,
        ),
    ),
}
NEEDS_ROS = ('bridge', 'latency', 'deploy')


def _measure(name: str, chosen: argparse.Namespace) -> int:
    from mher_ros.bench import result

    result.make_folder(chosen.out)
    flags = [flag.removeprefix('--') for [flag], _ in BENCHMARKS[name].arguments]
    given = {flag: getattr(chosen, flag) for flag in flags}
    if name in NEEDS_ROS:
        require_rclpy()
    kept = {'folder': chosen.out / name} if BENCHMARKS[name].keeps_runs else {}
    found = importlib.import_module(f'mher_ros.bench.{name}').measure(**given, **kept)
    values = result.to_dict(name, found, given)
    interrupted = bool(found.figures.get('interrupted'))
    # A partial result does not replace a whole one.
    file = f'{name}{found.variant}' + ('.partial' if interrupted else '')
    path = result.write(file, values, found.picture, chosen.out)
    if chosen.json:
        print(json.dumps(values, allow_nan=False))
    else:
        print(*map(result.markdown_section, found.tables), path, sep='\n\n')
    return INTERRUPTED if interrupted else 0


def _all(chosen: argparse.Namespace) -> int:
    from mher_ros.bench.report import write_report
    from mher_ros.bench.result import make_folder

    make_folder(chosen.out)
    summaries = {name: benchmark.summary for name, benchmark in BENCHMARKS.items()}
    failed = []
    # Also before the first benchmark: a page that cannot be written fails at once.
    write_report(chosen.page, chosen.out, summaries)
    for number, name in enumerate(BENCHMARKS, 1):
        kept = chosen.out / f'{name}.json'
        if chosen.missing and kept.exists():
            continue
        print(f'=== {name} ({number} of {len(BENCHMARKS)})', flush=True)
        # If it fails, the page must not show an older result.
        kept.unlink(missing_ok=True)
        # One process each: threads, caches and core affinity of one do not affect the next.
        command = [sys.executable, '-m', 'mher_ros', 'bench', name, '--out', str(chosen.out)]
        with subprocess.Popen(command) as process:
            try:
                if process.wait():
                    failed.append(name)
            except KeyboardInterrupt as interrupt:
                # Ctrl-C has reached that process, too; the next one kills it.
                if isinstance(interrupt, Terminated):
                    process.terminate()
                try:
                    process.wait()
                except KeyboardInterrupt:
                    process.kill()
                write_report(chosen.page, chosen.out, summaries)
                return INTERRUPTED
        write_report(chosen.page, chosen.out, summaries)
    print(f'page: {chosen.page}')
    if failed:
        print(f'mher: failed: {", ".join(failed)}', file=sys.stderr)
    return FAILED if failed else 0


def _out(files: str) -> Argument:
    return option('--out', KEPT, f'folder for {files}', type=Path, metavar='DIR')


ALL = Command(
    'run all benchmarks, and write a page (about five and a half hours on two idle cores)',
    _all,
    (
        option(
            '--page',
            PAGE,
            'Markdown file; results replace the text between its two markers; created if missing',
            type=Path,
            metavar='FILE',
        ),
        _out('JSON files and pictures'),
        argument('--missing', 'run only benchmarks without a result in DIR', action='store_true'),
    ),
)
BENCH = Command(
    'benchmarks, most of them against a baseline in the same run',
    _all,
    metavar='WHAT',
    commands={
        **{
            name: Command(
                f'{benchmark.summary} (about {benchmark.takes} on two idle cores)',
                partial(_measure, name),
                (*benchmark.arguments, JSON, _out(f'{name}.json and its picture')),
            )
            for name, benchmark in BENCHMARKS.items()
        },
        'all': ALL,
    },
)
