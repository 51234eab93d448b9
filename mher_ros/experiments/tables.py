"""Tables of the results of an experiment."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result, results_of
from mher_ros.experiments.metrics import (
    Estimate,
    interquartile_mean_over_tasks,
    mean_success,
    median_over_seeds,
    METRICS,
    PROGRESS_METRICS,
    RECORDED_METRICS,
)
import numpy as np


@dataclasses.dataclass(frozen=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    explained: str = ''


def markdown(table: Table) -> str:
    """Return the table as Markdown with aligned columns, without title and explanation."""
    lines = (table.header, *table.rows)
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = (f'| {" | ".join(map(str.ljust, cells, widths))} |' for cells in lines)
    return '\n'.join((first, f'|{"|".join("-" * (width + 2) for width in widths)}|', *others))


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
    """Estimates from the runs of an experiment; best first."""

    tasks: dict[str, dict[str, dict[str, Estimate]]]  # by task, algorithm and metric
    overall: dict[str, Estimate]  # by algorithm; only those with a run on every task
    runs: dict[tuple[str, str], int]  # number of runs by (task, algorithm)

    def to_dict(self) -> dict[str, Any]:
        tasks: dict[str, dict[str, Any]] = {task: {} for task in self.tasks}
        for (task, name), runs in self.runs.items():
            estimates = self.tasks[task][name].items()
            tasks[task][name] = {'runs': runs, **{key: one.to_dict() for key, one in estimates}}
        return {
            'tasks': tasks,
            'overall': {name: estimate.to_dict() for name, estimate in self.overall.items()},
        }


def figures_of(experiment: Experiment, results: Mapping[Job, Result]) -> Figures:
    runs: dict[str, dict[str, list[Result]]] = {task: {} for task in experiment.task_names}
    for variant in experiment.variants:
        if found := results_of(variant, results):
            runs[variant.task][variant.name] = list(found.values())
    metrics = (*PROGRESS_METRICS, *_recorded(experiment))
    tasks = {
        task: _best_first(
            {
                name: {
                    metric: median_over_seeds([METRICS[metric].compute(run) for run in found])
                    for metric in metrics
                }
                for name, found in algorithms.items()
            },
            lambda estimates: estimates['mean_success'].value,
        )
        for task, algorithms in runs.items()
    }
    overall = {
        name: interquartile_mean_over_tasks(
            [[mean_success(run['rows']) for run in runs[task][name]] for task in runs]
        )
        for name in experiment.names
        if all(name in algorithms for algorithms in runs.values())
    }
    counts = {(task, name): len(runs[task][name]) for task in tasks for name in tasks[task]}
    return Figures(tasks, _best_first(overall, lambda estimate: estimate.value), counts)


def tables_of(experiment: Experiment, figures: Figures) -> list[Table]:
    """Return two tables over all tasks if there are several, then one or two per task."""
    tables = []
    if len(figures.tasks) > 1:
        rows = tuple((name, _cell(one, '.3f')) for name, one in figures.overall.items())
        tables.append(Table('all tasks', ('algorithm', 'mean success'), rows, OVERALL_EXPLAINED))
        tables.append(_first_epochs(figures))
    recorded = _recorded(experiment)
    for task in figures.tasks:
        tables.append(_task_table(task, task, PROGRESS_METRICS, figures, EXPLAINED))
        if recorded:
            tables.append(_task_table(f'{task}, recorded', task, recorded, figures, MEDIANS))
    return tables


def seed_tables(experiment: Experiment, results: Mapping[Job, Result]) -> list[Table]:
    """Return one table for each of the experiment's metrics: every seed, median and mean."""
    seeds, tables = sorted({job.seed for job in results}), []
    for metric in (METRICS[name] for name in experiment.metrics):
        rows = []
        for variant in experiment.variants:
            runs = results_of(variant, results)
            values = {seed: metric.compute(run) for seed, run in runs.items()}
            shown: list[Any] = [values.get(seed) for seed in seeds]
            shown += [f(list(values.values())) if values else None for f in (np.median, np.mean)]
            cells = ('' if one is None else number_text(one, metric.form) for one in shown)
            rows.append((variant.name, *cells))
        header = (metric.heading, *(f'seed {seed}' for seed in seeds), 'median', 'mean')
        tables.append(Table(metric.heading, header, tuple(rows)))
    return tables


def _task_table(
    title: str, task: str, metrics: Sequence[str], figures: Figures, explained: str
) -> Table:
    header = ('algorithm', *(METRICS[metric].heading for metric in metrics), 'runs')
    rows = tuple(
        (
            name,
            *(_cell(estimates[metric], METRICS[metric].form) for metric in metrics),
            str(figures.runs[task, name]),
        )
        for name, estimates in figures.tasks[task].items()
    )
    return Table(title, header, rows, explained)


def _first_epochs(figures: Figures) -> Table:
    metric, tasks = METRICS['first_epoch'], figures.tasks.values()
    names = dict.fromkeys([*figures.overall, *(name for found in tasks for name in found)])
    rows = []
    for name in names:
        found = (one[name]['first_epoch'] if name in one else None for one in tasks)
        rows.append((name, *('' if one is None else _cell(one, metric.form) for one in found)))
    return Table(metric.heading, ('algorithm', *figures.tasks), tuple(rows), EXPLAINED)


def _recorded(experiment: Experiment) -> tuple[str, ...]:
    recorders = dict.fromkeys(variant.recorder for variant in experiment.variants)
    return tuple(metric for name in recorders for metric in RECORDED_METRICS.get(name, ()))


def _cell(estimate: Estimate, form: str) -> str:
    value, low, high = (number_text(number, form) for number in dataclasses.astuple(estimate))
    return f'{value} [{low}, {high}]' if value != low or value != high else value


def number_text(value: Any, form: str) -> str:
    return format(value, form) if math.isfinite(value) else 'never'


def _best_first(named: dict[str, Any], key: Callable[[Any], float]) -> dict[str, Any]:
    return dict(sorted(named.items(), key=lambda item: key(item[1]), reverse=True))
