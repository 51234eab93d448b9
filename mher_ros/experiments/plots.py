"""Figures of runs in one style: an algorithm has the same colour and marker in all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import csv
import functools
import io
from pathlib import Path
from typing import Any

from matplotlib import colormaps, rc_context, rc_params_from_file
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from mher_ros.experiments.experiment import Experiment, Variant
from mher_ros.experiments.jobs import Job, Result, results_of
from mher_ros.interface import Vector
import numpy as np

Runs = Sequence[tuple[Sequence[float], Sequence[float]]]  # (steps, values) of each run
DATA = Path(__file__).parent / 'data'
STYLE = rc_params_from_file(DATA / 'report.mplstyle', use_default_template=False)
# Okabe and Ito's colours, safe for colour-blind readers, for the algorithms of the paper's
# Figure 2; the others have Tol's, and families have shades of one colour. Markers differ, too.
ALGORITHMS = {
    'mher': ('#D55E00', 'o'),
    'her': ('#0072B2', 's'),
    'cher': ('#56B4E9', '^'),
    'mep': ('#009E73', 'D'),
    'gcsl': ('#CC79A7', 'v'),
    'ddpg': ('#7A7A7A', 'X'),
    'no_sl': ('#E69F00', 'P'),
    'no_mbr': ('#882255', '*'),
    'random_relabel': ('#999933', '<'),
    'goal_noise': ('#44AA99', '>'),
    'mve3': ('#C2A5CF', 'v'),
    'mve5': ('#9970AB', 'v'),
    'mve7': ('#762A83', 'v'),
    'mve_her': ('#40004B', 'p'),
    'mbpo3': ('#A6DBA0', '^'),
    'mbpo5': ('#5AAE61', '^'),
    'mbpo7': ('#1B7837', '^'),
    'mbpo_her': ('#00441B', 'h'),
    'plangan': ('#332288', 'd'),
}
MARKERS = 'osD^vP*X<>'
AUTHORS_LINE: dict[str, Any] = {'ls': '--', 'lw': 1.2}
LOSS_LOOKS = {
    'loss': {'color': '#882255', 'marker': 'v'},
    'return': {'color': '#0072B2', 'marker': 'o'},
}
PANEL = (4.2, 3.1)  # size of a panel [inch]
LEGEND_ROW, LEGEND_ENTRY, LEGEND_LETTER = 0.22, 0.65, 0.085
"""Height of a row of the legend, width of an entry without text and of a letter [inch]."""
WARMUP_EPISODES, EPISODE_STEPS = 20, 100
AUTHORS_CHANGES = {'point2d_large': (('task.box', 4.0),), 'point2d_four_room': ()}
"""Options of a variant that equals what the authors ran, by task."""


def _curves(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    look, has_authors = looks(experiment.names), False
    with panels(experiment.task_names) as (figure, axes):
        for variant, ax in _places(experiment, axes):
            runs = [
                ([row['env_steps'] for row in rows], [row['success_rate'] for row in rows])
                for rows in (run['rows'] for run in results_of(variant, results).values())
            ]
            if not runs:
                continue
            band(ax, runs, variant.name, look[variant.name])
            authors = authors_curve(variant)
            if authors:
                ax.plot(*authors, color=look[variant.name]['color'], **AUTHORS_LINE)
                has_authors = True
        for ax in axes:
            ax.set(ylim=(-0.02, 1.02), xlabel='environment steps', ylabel='success')
            ax.xaxis.set_major_locator(MaxNLocator(6))
        if has_authors:
            axes[0].plot([], [], color='#333333', label="authors' code", **AUTHORS_LINE)
    return figure


def _goal_distance(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    look = looks(experiment.names)
    with panels(experiment.task_names) as (figure, axes):
        for variant, ax in _places(experiment, axes):
            records = [run['record'] for run in results_of(variant, results).values()]
            for what, ls in (('relabelled', '-'), ('achieved', ':')) if records else ():
                runs = [(record['env_steps'], record[what]) for record in records]
                label = f'{variant.name}, {what} goals'
                band(ax, runs, label, {**look[variant.name], 'ls': ls})
        for ax in axes:
            ax.set_ylim(bottom=0.0)
            ax.set(xlabel='environment steps', ylabel='distance to the desired goal')
    return figure


def _goal_scatter(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    """Return panels: one row per task and time, one column per algorithm."""
    names, tasks = experiment.names, experiment.task_names
    first: dict[tuple[str, str], Result] = {}
    for job in sorted(results, key=lambda job: job.seed):
        first.setdefault((job.variant.task, job.variant.name), results[job])
    places = [(task, when, name) for task in tasks for when in ('early', 'late') for name in names]
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


def _loss_and_return(experiment: Experiment, results: Mapping[Job, Result]) -> Figure:
    tasks = experiment.task_names
    places = [(what, task) for what in LOSS_LOOKS for task in tasks]
    with panels([task for _, task in places], columns=len(tasks)) as (figure, axes):
        for (what, task), ax in zip(places, axes, strict=True):
            runs = [
                (result['record']['env_steps'], result['record'][what])
                for job, result in results.items()
                if job.variant.task == task
            ]
            label = 'supervised loss' if what == 'loss' else what
            if runs:
                band(ax, runs, label, LOSS_LOOKS[what])
            ax.set(xlabel='environment steps', ylabel=label)
    return figure


FIGURES: dict[str, tuple[Callable[[Experiment, Mapping[Job, Result]], Figure], str]] = {
    'curves': (
        _curves,
        'Share of test goals reached over environment steps, random warm-up included: median over '
        "seeds, band from quartile to quartile. Dashed: median of the authors' own code.",
    ),
    'goal_distance': (
        _goal_distance,
        'Mean distance between the desired goals of replayed transitions and the goals they are '
        "relabelled with, in the task's unit: median over seeds, band from quartile to quartile. "
        'Dotted: the distance of the goals that these transitions have achieved.',
    ),
    'goal_scatter': (
        _goal_scatter,
        'The newest trajectory of the first seed (grey), its desired goal (star), and the goals '
        'with which its steps would be relabelled, after the first and the last evaluation.',
    ),
    'loss_and_return': (
        _loss_and_return,
        'Above, the supervised loss on relabelled transitions (Eq. 6); below, the discounted '
        'return of test episodes: median over seeds, band from quartile to quartile. Theorem 1 '
        'bounds the return from below by a constant minus a multiple of this loss.',
    ),
}
"""The function and the caption of each figure."""


def _places(experiment: Experiment, axes: Sequence[Axes]) -> Iterator[tuple[Variant, Axes]]:
    for task, ax in zip(experiment.task_names, axes, strict=True):
        yield from ((variant, ax) for variant in experiment.variants if variant.task == task)


def authors_curve(variant: Variant) -> tuple[list[int], list[float]] | None:
    """Return environment steps and median success of the authors' own code; None if unknown."""
    rates = _authors_curves().get((variant.task, variant.algorithm, variant.preset))
    if rates is None or AUTHORS_CHANGES.get(variant.task) != variant.changes:
        return None
    return [(WARMUP_EPISODES + 1 + epoch) * EPISODE_STEPS for epoch in range(len(rates))], rates


@functools.cache
def _authors_curves() -> dict[tuple[str, str, str], list[float]]:
    text = (DATA / 'authors_median_success.csv').read_text()
    lines = (line for line in text.splitlines() if not line.startswith('#'))
    return {
        (row['task'], row['algorithm'], row['preset']): [
            float(value) for column, value in row.items() if column.startswith('e')
        ]
        for row in csv.DictReader(lines)
    }


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return colour and marker by name; names that are no algorithms get a scale of shades."""
    others = [name for name in names if name not in ALGORITHMS]
    found = {}
    for name in names:
        if name in ALGORITHMS:
            colour, marker = ALGORITHMS[name]
        else:
            place = others.index(name)
            shade = colormaps['viridis'](0.9 * place / max(1, len(others) - 1))
            colour, marker = to_hex(shade), MARKERS[place % len(MARKERS)]
        found[name] = {'color': colour, 'marker': marker}
    return found


@contextlib.contextmanager
def panels(
    titles: Sequence[str], columns: int = 3, size: tuple[float, float] = PANEL
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure with one panel per title, in the common style; then add the legend."""
    across = min(columns, len(titles))
    down = -(-len(titles) // across)
    with rc_context(STYLE):
        figure = Figure(figsize=(size[0] * across, size[1] * down + 0.5), layout='constrained')
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for ax, title in zip(axes, titles, strict=False):
            ax.set_title(title, loc='left')
        for ax in axes[len(titles) :]:
            ax.remove()
        yield figure, axes[: len(titles)]
        handles: dict[str, Any] = {}
        for ax in axes[: len(titles)]:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        if handles:
            entry = LEGEND_ENTRY + LEGEND_LETTER * max(map(len, handles))
            beside = max(1, min(len(handles), int(size[0] * across / entry)))
            # A long legend makes the figure higher, not the panels smaller.
            below = -(-len(handles) // beside)
            figure.set_figheight(size[1] * down + 0.3 + LEGEND_ROW * below)
            figure.legend(
                list(handles.values()), list(handles), loc='outside lower center', ncols=beside
            )


def band(ax: Axes, runs: Runs, label: str, look: Mapping[str, Any]) -> None:
    """Draw median and quartiles of runs (steps, values); an ended run keeps its last value."""
    steps, values = aligned(runs)
    low, middle, high = np.nanpercentile(values, (25, 50, 75), axis=0)
    every = max(1, len(steps) // 8)
    ax.plot(steps, middle, label=label, markevery=every, **look)
    if len(runs) > 1:
        ax.fill_between(steps, low, high, color=look['color'], alpha=0.18, linewidth=0)


def aligned(runs: Runs) -> tuple[Vector, Vector]:
    """Return all steps (S,) of any run, and the last known values (R, S) at these steps."""
    steps = np.unique(np.concatenate([np.asarray(x, float) for x, _ in runs]))
    values = np.full((len(runs), len(steps)), np.nan)
    for line, (x, y) in zip(values, runs, strict=True):
        latest = np.searchsorted(np.asarray(x, float), steps, side='right') - 1
        line[latest >= 0] = np.asarray(y, float)[latest[latest >= 0]]
    known = ~np.isnan(values).all(axis=0)
    return steps[known], values[:, known]


def png(figure: Figure) -> bytes:
    return _saved(figure, format='png', dpi=150)


def svg(figure: Figure) -> bytes:
    """Return the figure as SVG; the same figure gives the same bytes."""
    return _saved(figure, format='svg', metadata={'Date': None})


def _saved(figure: Figure, **choices: Any) -> bytes:
    with rc_context(STYLE):
        file = io.BytesIO()
        figure.savefig(file, **choices)
    return file.getvalue()
