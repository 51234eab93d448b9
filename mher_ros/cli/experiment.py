"""``mher experiment``."""

from __future__ import annotations

import argparse
from pathlib import Path
import sys
from typing import Any

from mher_ros.cli.argument_types import positive, seeds
from mher_ros.options import OptionError

SUMMARY = 'compare variants over seeds; prints a table'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('name', metavar='NAME', help='an unknown one lists them all')
    parser.add_argument(
        '--seeds', type=seeds, default='1-5', help='such as 1-5 or 1,2,7 (default 1-5)'
    )
    parser.add_argument(
        '--out',
        default='runs/experiments',
        metavar='DIR',
        help='where runs are kept (default runs/experiments)',
    )
    parser.add_argument('--processes', type=positive, help='default: cores')


def run(chosen: argparse.Namespace) -> None:
    from mher_ros.experiments.catalogue import EXPERIMENTS
    from mher_ros.experiments.experiment import run_experiment
    from mher_ros.experiments.tables import markdown_tables

    if chosen.name not in EXPERIMENTS:
        names = ', '.join(EXPERIMENTS)
        raise OptionError(f'unknown experiment {chosen.name!r}; there are {names}')
    experiment = EXPERIMENTS[chosen.name]
    folder = Path(chosen.out) / experiment.name
    results: dict[str, dict[int, Any]] = {}
    total = len(experiment.variants) * len(chosen.seeds)
    print(f'{experiment.question} {total} runs, kept in {folder}', file=sys.stderr)
    runs = run_experiment(experiment, chosen.seeds, folder, chosen.processes)
    for number, (variant, seed, rows) in enumerate(runs, 1):
        results.setdefault(variant.name, {})[seed] = rows
        print(f'{number:>4}/{total}  {variant.name}, seed {seed}', file=sys.stderr, flush=True)
    print(markdown_tables(experiment, results))
