"""Learning curves: success over environment steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mher_ros.experiments.authors import authors_curve
from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result
from mher_ros.experiments.plots.style import band, looks, panels

EXPLAINED = (
    'Share of test goals reached, after environment steps (random ones at the start counted): '
    "median over seeds, band from quartile to quartile. Dashed: median of the authors' own code, "
    'where there is one.'
)

THEIRS: dict[str, Any] = {'ls': '--', 'lw': 1.2}


def draw(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return a panel a task, a line a system."""
    tasks = tuple(dict.fromkeys(variant.task for variant in experiment.variants))
    look = looks(tuple(dict.fromkeys(variant.name for variant in experiment.variants)))
    shown_theirs = False
    with panels(tasks) as (figure, axes):
        for task, ax in zip(tasks, axes, strict=True):
            for variant in experiment.variants:
                if variant.task != task:
                    continue
                runs = [
                    (
                        [row['env_steps'] for row in result['rows']],
                        [row['success_rate'] for row in result['rows']],
                    )
                    for job, result in results.items()
                    if job.variant == variant
                ]
                if runs:
                    band(ax, runs, variant.name, look[variant.name])
                theirs = authors_curve(variant)
                if runs and theirs:
                    ax.plot(*theirs, color=look[variant.name]['color'], **THEIRS)
                    shown_theirs = True
            ax.set_ylim(-0.02, 1.02)
            ax.xaxis.set_major_locator(MaxNLocator(6))
            ax.set_xlabel('environment steps')
            ax.set_ylabel('success')
        if shown_theirs:
            axes[0].plot([], [], color='#333333', label="authors' code", **THEIRS)
    return figure
