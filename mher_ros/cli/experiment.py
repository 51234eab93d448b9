"""``mher experiment``."""

from __future__ import annotations

import argparse
from functools import partial
import json
from pathlib import Path
import sys
import time
from typing import TYPE_CHECKING

from mher_ros.cli.argument_types import names, positive, seeds
from mher_ros.cli.exit_codes import FAILED
from mher_ros.options import OptionError, read_changes

if TYPE_CHECKING:
    from mher_ros.experiments.experiment import Experiment
    from mher_ros.experiments.report import Outcome

SUMMARY = 'compare systems over seeds: tables, figures, a report'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        'name', metavar='NAME', nargs='?', help='which; without it, all are listed'
    )
    parser.add_argument('--list', action='store_true', help='list the experiments')
    parser.add_argument(
        '--seeds', type=seeds, default='5', help='how many, or which: 5, 1-5, 1,2,7 (default 5)'
    )
    parser.add_argument('--tasks', type=names, metavar='A,B', help="or 'all' (default: its own)")
    parser.add_argument('--systems', type=names, metavar='A,B', help="or 'all' (default: its own)")
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='change any option in all systems, see `mher options`; may be given again',
    )
    parser.add_argument(
        '--out',
        default='runs/experiments',
        metavar='DIR',
        help='where runs and reports are kept (default runs/experiments)',
    )
    parser.add_argument('--processes', type=positive, help='runs at once (default: cores)')
    parser.add_argument(
        '--on', choices=('local', 'ray'), default='local', help='where runs are done'
    )
    parser.add_argument(
        '--ray-address',
        metavar='HOST:PORT',
        help='a Ray cluster that is there (default: one of this machine, for this experiment)',
    )
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def run(chosen: argparse.Namespace) -> int | None:
    from mher_ros.experiments.catalogue import all_experiments, find_experiment
    from mher_ros.experiments.experiment import narrow, with_changes
    from mher_ros.experiments.report import summary, table_text, write_report

    if chosen.list or chosen.name is None:
        _list({name: one.question for name, one in all_experiments().items()}, chosen.json)
        return None
    if chosen.ray_address and chosen.on != 'ray':
        raise OptionError('--ray-address goes with --on ray')
    experiment = with_changes(
        narrow(find_experiment(chosen.name), chosen.tasks, chosen.systems),
        read_changes(chosen.set, '--set'),
    )
    folder = Path(chosen.out) / experiment.name
    outcome = _sweep(experiment, folder, chosen)
    page = write_report(outcome, folder)
    print(json.dumps(summary(outcome)) if chosen.json else table_text(outcome), end='')
    for job, failure in outcome.failures.items():
        print(f'failed: {job}: {failure.reason}', file=sys.stderr)
    print(f'report: {page}', file=sys.stderr)
    return FAILED if outcome.failures else None


def _sweep(experiment: Experiment, folder: Path, chosen: argparse.Namespace) -> Outcome:
    from mher_ros.experiments.grid_view import make_view
    from mher_ros.experiments.jobs import Failure
    from mher_ros.experiments.local import cores, run_local
    from mher_ros.experiments.on_ray import run_on_ray
    from mher_ros.experiments.report import Outcome
    from mher_ros.experiments.sweep import jobs_of, sweep

    jobs = jobs_of(experiment, chosen.seeds)
    run_jobs = (
        partial(run_on_ray, address=chosen.ray_address, processes=chosen.processes)
        if chosen.on == 'ray'
        else partial(run_local, processes=chosen.processes)
    )
    print(f'{experiment.question} {len(jobs)} runs, kept in {folder}', file=sys.stderr)
    started = time.monotonic()
    results, failures = {}, {}
    view = make_view(jobs, chosen.processes or cores())
    try:
        for job, news in sweep(jobs, folder, run_jobs):
            view.hear(job, news)
            if isinstance(news, Failure):
                failures[job] = news
            elif isinstance(news, dict):
                results[job] = news
    finally:
        view.close()
    return Outcome(experiment, tuple(chosen.seeds), results, failures, time.monotonic() - started)


def _list(questions: dict[str, str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(questions))
        return
    width = max(map(len, questions))
    for name, question in questions.items():
        print(f'{name:<{width}}  {question}')
