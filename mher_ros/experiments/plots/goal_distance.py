"""How far relabelled goals are from desired ones, over training."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result
from mher_ros.experiments.plots.style import band, looks, panels

EXPLAINED = (
    'Mean distance between the desired goals of replayed transitions and the goals they are '
    "relabelled with, in the task's unit: median over seeds, band from quartile to quartile. "
    'Dotted: the distance of what these transitions have achieved.'
)


def draw(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return a panel a task, a line a system."""
    tasks = tuple(dict.fromkeys(variant.task for variant in experiment.variants))
    look = looks(tuple(dict.fromkeys(variant.name for variant in experiment.variants)))
    with panels(tasks) as (figure, axes):
        for task, ax in zip(tasks, axes, strict=True):
            for variant in experiment.variants:
                records = [
                    result['record'] for job, result in results.items() if job.variant == variant
                ]
                if variant.task != task or not records:
                    continue
                for what, ls in (('relabelled', '-'), ('achieved', ':')):
                    runs = [(record['env_steps'], record[what]) for record in records]
                    label = f'{variant.name}, {what} goals'
                    band(ax, runs, label, {**look[variant.name], 'ls': ls})
            ax.set_ylim(bottom=0.0)
            ax.set_xlabel('environment steps')
            ax.set_ylabel('distance to the desired goal')
    return figure
