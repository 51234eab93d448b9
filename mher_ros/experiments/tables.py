"""Runs to tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

from mher_ros.experiments.bootstrap import Estimate, median_over_seeds, middle_mean_over_tasks
from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result
from mher_ros.experiments.measures import (
    final_success,
    first_epoch,
    mean_success,
    MEASURES,
    rank_correlation,
)
from mher_ros.experiments.table import Table
import numpy as np

__all__ = ['figures_of', 'Figures', 'seed_tables', 'tables_of']

REACHED = 0.9
Columns = dict[str, tuple[str, Callable[[Result], float], str]]
"""Name to (heading, function of a run's result, format)."""
COLUMNS: Columns = {
    'final_success': ('success at the end', lambda run: final_success(run['rows']), '.2f'),
    'mean_success': ('mean success', lambda run: mean_success(run['rows']), '.3f'),
    'first_epoch': (
        'first epoch >= 0.9',
        lambda run: first_epoch(REACHED, run['rows']),
        'g',
    ),
}
RECORDED: dict[str, Columns] = {
    'relabelled_goals': {
        'early_distance': (
            'goals to the desired one, early',
            lambda run: _look(run, 'early'),
            '.3f',
        ),
        'late_distance': ('late', lambda run: _look(run, 'late'), '.3f'),
    },
    'goal_distance': {
        'first_distance': (
            'relabelled to desired goals, first',
            lambda run: run['record']['relabelled'][0],
            '.3f',
        ),
        'last_distance': ('last', lambda run: run['record']['relabelled'][-1], '.3f'),
    },
    'supervised_loss': {
        'first_loss': ('supervised loss, first', lambda run: run['record']['loss'][0], '.3f'),
        'last_loss': ('last', lambda run: run['record']['loss'][-1], '.3f'),
        'first_return': ('return, first', lambda run: run['record']['return'][0], '.1f'),
        'last_return': ('last', lambda run: run['record']['return'][-1], '.1f'),
        'correlation': (
            'rank correlation of loss and return',
            lambda run: rank_correlation(run['record']['loss'], run['record']['return']),
            '.2f',
        ),
    },
}
"""Recorder to what is shown of its record."""
MEDIANS = 'Medians over seeds with bootstrapped 95 % intervals.'
EXPLAINED = (
    f'{MEDIANS} Success at the end: mean of the last 5 evaluations. Mean success: over all '
    'evaluations, the area under the curve. First epoch: number of the first evaluation with at '
    'least 0.9.'
)
OVERALL_EXPLAINED = (
    'Interquartile mean of mean success over tasks and seeds, with a stratified bootstrapped 95 % '
    'interval (Agarwal et al. 2021).'
)


@dataclasses.dataclass(frozen=True)
class Figures:
    """What the runs of an experiment come to; best first."""

    tasks: dict[str, dict[str, dict[str, Estimate]]]
    """Task, system, column."""
    overall: dict[str, Estimate]
    """System; only of those that have a run on every task."""
    runs: dict[tuple[str, str], int]
    """(task, system) to the number of runs there are."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            'tasks': {
                task: {
                    system: {
                        'runs': self.runs[task, system],
                        **{name: estimate.to_dict() for name, estimate in columns.items()},
                    }
                    for system, columns in systems.items()
                }
                for task, systems in self.tasks.items()
            },
            'overall': {system: estimate.to_dict() for system, estimate in self.overall.items()},
        }


def figures_of(experiment: Experiment, results: Mapping[Job, Result]) -> Figures:
    """Return all figures of the runs there are."""
    runs: dict[str, dict[str, list[Result]]] = {task: {} for task in _tasks(experiment)}
    for variant in experiment.variants:
        found = [result for job, result in results.items() if job.variant == variant]
        if found:
            runs[variant.task][variant.name] = found
    columns = {**COLUMNS, **_recorded(experiment)}
    tasks = {
        task: _best_first(
            {
                system: {
                    name: median_over_seeds([measure(run) for run in found])
                    for name, (_, measure, _) in columns.items()
                }
                for system, found in systems.items()
            },
            lambda estimates: estimates['mean_success'].value,
        )
        for task, systems in runs.items()
    }
    overall = {
        system: middle_mean_over_tasks(
            [[mean_success(run['rows']) for run in runs[task][system]] for task in runs]
        )
        for system in dict.fromkeys(variant.name for variant in experiment.variants)
        if all(system in systems for systems in runs.values())
    }
    counts = {
        (task, system): len(found)
        for task, systems in runs.items()
        for system, found in systems.items()
    }
    return Figures(tasks, _best_first(overall, lambda estimate: estimate.value), counts)


def tables_of(experiment: Experiment, figures: Figures) -> list[Table]:
    """Return two over all tasks where there are several, then one or two a task."""
    tables = []
    if len(figures.tasks) > 1:
        rows = tuple((name, _cell(one, '.3f')) for name, one in figures.overall.items())
        tables.append(Table('all tasks', ('system', 'mean success'), rows, OVERALL_EXPLAINED))
        tables.append(_first_epochs(figures))
    recorded = _recorded(experiment)
    for task in figures.tasks:
        tables.append(_task_table(task, task, COLUMNS, figures, EXPLAINED))
        if recorded:
            tables.append(_task_table(f'{task}, recorded', task, recorded, figures, MEDIANS))
    return tables


def seed_tables(experiment: Experiment, results: Mapping[Job, Result]) -> list[Table]:
    """Return a table for each of the experiment's measures: seed by seed, median and mean."""
    return [_seed_table(experiment, name, results) for name in experiment.measures]


def _seed_table(experiment: Experiment, name: str, results: Mapping[Job, Result]) -> Table:
    heading, measure, form = MEASURES[name]
    seeds = sorted({job.seed for job in results})
    rows = []
    for variant in experiment.variants:
        figures = {
            job.seed: measure(result['rows'])
            for job, result in results.items()
            if job.variant == variant
        }
        values = list(figures.values())
        cells = [_number(figures[seed], form) if seed in figures else '' for seed in seeds]
        summary = [_number(float(f(values)), form) if values else '' for f in (np.median, np.mean)]
        rows.append((variant.name, *cells, *summary))
    header = (heading, *(f'seed {seed}' for seed in seeds), 'median', 'mean')
    return Table(heading, header, tuple(rows))


def _task_table(
    title: str, task: str, columns: Columns, figures: Figures, explained: str
) -> Table:
    header = ('system', *(heading for heading, _, _ in columns.values()), 'runs')
    rows = tuple(
        (
            system,
            *(_cell(estimates[name], form) for name, (_, _, form) in columns.items()),
            str(figures.runs[task, system]),
        )
        for system, estimates in figures.tasks[task].items()
    )
    return Table(title, header, rows, explained)


def _first_epochs(figures: Figures) -> Table:
    heading, _, form = COLUMNS['first_epoch']
    systems = dict.fromkeys(
        [*figures.overall, *(name for named in figures.tasks.values() for name in named)]
    )
    rows = tuple(
        (
            system,
            *(
                _cell(named[system]['first_epoch'], form) if system in named else ''
                for named in figures.tasks.values()
            ),
        )
        for system in systems
    )
    return Table(heading, ('system', *figures.tasks), rows, EXPLAINED)


def _recorded(experiment: Experiment) -> Columns:
    recorders = dict.fromkeys(variant.recorder for variant in experiment.variants)
    return {
        name: column
        for recorder in recorders
        for name, column in RECORDED.get(recorder, {}).items()
    }


def _look(run: Result, when: str) -> float:
    """Return the mean distance of relabelled goals to the desired one."""
    look = run['record'][when]
    distances = np.linalg.norm(np.array(look['relabelled']) - np.array(look['desired']), axis=-1)
    return float(distances.mean())


def _cell(estimate: Estimate, form: str) -> str:
    value, low, high = (
        _number(number, form) for number in (estimate.value, estimate.low, estimate.high)
    )
    return f'{value} [{low}, {high}]' if value != low or value != high else value


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else 'never'


def _tasks(experiment: Experiment) -> Sequence[str]:
    return tuple(dict.fromkeys(variant.task for variant in experiment.variants))


def _best_first(named: dict[str, Any], key: Callable[[Any], float]) -> dict[str, Any]:
    return dict(sorted(named.items(), key=lambda item: key(item[1]), reverse=True))
