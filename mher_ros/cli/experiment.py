"""``mher experiment``."""

from __future__ import annotations

import argparse
from functools import partial
import json
from pathlib import Path
import sys
import time
from typing import TYPE_CHECKING

from mher_ros.cli import arguments
from mher_ros.cli.arguments import argument, Command, FAILED, JSON, option, SET
from mher_ros.options import OptionError, read_changes

if TYPE_CHECKING:
    from mher_ros.experiments.experiment import Experiment
    from mher_ros.experiments.report import Outcome


def _experiment(chosen: argparse.Namespace) -> int | None:
    from mher_ros.experiments.experiment import (
        EXPERIMENTS,
        find_experiment,
        narrow,
        with_changes,
    )
    from mher_ros.experiments.report import summary, table_text, write_report

    if chosen.name is None:
        questions = {name: one.question for name, one in EXPERIMENTS.items()}
        width = max(map(len, questions))
        lines = [f'{name:<{width}}  {question}' for name, question in questions.items()]
        print(json.dumps(questions) if chosen.json else '\n'.join(lines))
        return None
    if chosen.ray and chosen.processes:
        raise OptionError('--processes is only for this machine; a cluster has its own limit')
    experiment = with_changes(
        narrow(find_experiment(chosen.name), chosen.tasks, chosen.algorithms),
        read_changes(chosen.set, '--set'),
    )
    folder = Path(chosen.out) / experiment.name
    outcome = _sweep(experiment, folder, chosen)
    page = write_report(outcome, folder)
    print(json.dumps(summary(outcome)) if chosen.json else table_text(outcome), end='')
    for job, failure in outcome.failures.items():
        _log(f'failed: {job}: {failure.reason}')
    _log(f'report: {page}')
    return FAILED if outcome.failures else None


def _sweep(experiment: Experiment, folder: Path, chosen: argparse.Namespace) -> Outcome:
    from mher_ros.experiments.executors import run_local, run_on_ray
    from mher_ros.experiments.jobs import Failure, jobs_of, Lost, sweep
    from mher_ros.experiments.report import Outcome

    jobs = jobs_of(experiment, chosen.seeds)
    execute = (
        partial(run_on_ray, address=chosen.ray)
        if chosen.ray
        else partial(run_local, processes=chosen.processes)
    )
    _log(f'{experiment.question} {len(jobs)} runs, kept in {folder}')
    started = time.monotonic()
    results, failures = {}, {}
    for job, event in sweep(jobs, folder, execute):
        if isinstance(event, Lost):
            _log(f'{job}: {event.reason}; started again')
            continue
        note = ''
        if isinstance(event, Failure):
            failures[job], note = event, f' failed: {event.reason}'
        else:
            results[job] = event
        _log(f'{len(results) + len(failures):>4}/{len(jobs)}  {job}{note}')
    return Outcome(experiment, tuple(chosen.seeds), results, failures, time.monotonic() - started)


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _names(flag: str, what: str) -> arguments.Argument:
    text = f"{what}, or 'all' (default: those of the experiment)"
    return argument(flag, text, type=arguments.names, metavar='A,B')


EXPERIMENT = Command(
    'compare algorithms over seeds: tables, figures, a report',
    _experiment,
    (
        argument(
            'name', 'name of an experiment; without it, all are listed', metavar='NAME', nargs='?'
        ),
        arguments.seeds_argument('5'),
        _names('--tasks', 'tasks'),
        _names('--algorithms', 'variants'),
        SET,
        option('--out', 'runs/experiments', 'folder of runs and reports', metavar='DIR'),
        argument(
            '--processes', 'runs at the same time (default: one per core)', type=arguments.positive
        ),
        argument('--ray', 'run on this Ray cluster, not on this machine', metavar='HOST:PORT'),
        JSON,
    ),
)
