"""The supervised loss and the return that it bounds, over training."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure
from mher_ros.experiments.experiment import Experiment
from mher_ros.experiments.jobs import Job, Result
from mher_ros.experiments.plots.style import band, panels

EXPLAINED = (
    'Above, the supervised loss on relabelled rows (Eq. 6); below, the discounted return of test '
    'episodes: median over seeds, band from quartile to quartile. Theorem 1 bounds the return '
    'from below by a constant minus a multiple of this loss.'
)
LOOKS = {
    'loss': {'color': '#882255', 'marker': 'v'},
    'return': {'color': '#0072B2', 'marker': 'o'},
}


def draw(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return two panels a task, one above the other."""
    tasks = tuple(dict.fromkeys(variant.task for variant in experiment.variants))
    places = [(what, task) for what in LOOKS for task in tasks]
    with panels([task for _, task in places], columns=len(tasks)) as (figure, axes):
        for (what, task), ax in zip(places, axes, strict=True):
            runs = [
                (result['record']['env_steps'], result['record'][what])
                for job, result in results.items()
                if job.variant.task == task
            ]
            if runs:
                band(ax, runs, f'supervised {what}' if what == 'loss' else what, LOOKS[what])
            ax.set_xlabel('environment steps')
            ax.set_ylabel('supervised loss' if what == 'loss' else 'return')
    return figure
