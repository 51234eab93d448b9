"""Where relabelled goals lie, next to the trajectory they are for."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result
from mher_ros.experiments.plots.style import looks, panels
import numpy as np

EXPLAINED = (
    'The newest trajectory of a run (grey, its first seed), its desired goal (star) and the goals '
    'that its steps would be relabelled with, after the first evaluation and after the last. The '
    'first two coordinates are shown.'
)
WHEN = ('early', 'late')


def draw(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return panels: a row for each task and time, a column for each system."""
    names = tuple(dict.fromkeys(variant.name for variant in experiment.variants))
    tasks = tuple(dict.fromkeys(variant.task for variant in experiment.variants))
    first: dict[tuple[str, str], Result] = {}
    for job in sorted(results, key=lambda job: job.seed):
        first.setdefault((job.variant.task, job.variant.name), results[job])
    places = [(task, when, name) for task in tasks for when in WHEN for name in names]
    look = looks(names)
    titles = [f'{task}, {name}, {when}' for task, when, name in places]
    with panels(titles, columns=len(names), size=(3.2, 3.0)) as (figure, axes):
        for (task, when, name), ax in zip(places, axes, strict=True):
            ax.set_aspect('equal', 'datalim')
            if (task, name) not in first:
                continue
            seen = first[task, name]['record'][when]
            path, goals = np.array(seen['path']), np.array(seen['relabelled'])
            ax.plot(path[:, 0], path[:, 1], color='#999999', lw=1.0, marker='.', ms=3.0)
            ax.scatter(goals[:, 0], goals[:, 1], s=9, alpha=0.5, lw=0, zorder=2.5, **look[name])
            ax.plot(*seen['desired'][:2], marker='*', ms=13, color='black', mec='white')
    return figure
