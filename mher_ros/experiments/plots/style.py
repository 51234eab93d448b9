"""How pictures look: one colour and marker a system, in all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import io
from typing import Any

from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
import numpy as np
from numpy.typing import NDArray

__all__ = ['band', 'looks', 'panels', 'png', 'svg']

# Okabe and Ito's colours for the systems of the paper's Figure 2, which tell apart for all eyes;
# the others have Tol's, and families have shades of one. Markers tell them apart without colour.
SYSTEMS = {
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
STYLE: Any = {
    'axes.axisbelow': True,
    'axes.edgecolor': '#666666',
    'axes.grid': True,
    'axes.labelcolor': '#333333',
    'axes.spines.right': False,
    'axes.spines.top': False,
    'axes.titlesize': 'medium',
    'axes.titleweight': 'bold',
    'figure.facecolor': 'white',
    'font.family': 'sans-serif',
    'font.size': 10.0,
    'grid.color': '#E4E4E4',
    'grid.linewidth': 0.8,
    'legend.frameon': False,
    'lines.linewidth': 1.8,
    'lines.markersize': 4.5,
    'svg.fonttype': 'none',
    'svg.hashsalt': 'mher_ros',
    'xtick.color': '#666666',
    'xtick.labelcolor': '#333333',
    'ytick.color': '#666666',
    'ytick.labelcolor': '#333333',
}
PANEL = (4.2, 3.1)
"""Size of a panel [inch]."""
LEGEND_ROW, LEGEND_ENTRY, LEGEND_LETTER = 0.22, 0.65, 0.085
"""Height of a line of the legend, width of an entry without text and of a letter [inch]."""


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return colour and marker of each line; those that are no systems get a scale of shades."""
    others = [name for name in names if name not in SYSTEMS]
    found = {}
    for name in names:
        if name in SYSTEMS:
            colour, marker = SYSTEMS[name]
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
    """Give a figure with a panel for each title, in the house style."""
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
            # Many lines must not leave the panels without room.
            below = -(-len(handles) // beside)
            figure.set_figheight(size[1] * down + 0.3 + LEGEND_ROW * below)
            figure.legend(
                list(handles.values()), list(handles), loc='outside lower center', ncols=beside
            )


def band(
    ax: Axes,
    runs: Sequence[tuple[Sequence[float], Sequence[float]]],
    label: str,
    look: Mapping[str, Any],
) -> None:
    """
    Draw the median of runs, each (steps, values), and a band from quartile to quartile.

    A run that ended earlier than others, because it had learnt, keeps its last value.
    """
    steps, values = aligned(runs)
    low, middle, high = np.nanpercentile(values, (25, 50, 75), axis=0)
    every = max(1, len(steps) // 8)
    ax.plot(steps, middle, label=label, markevery=every, **look)
    if len(runs) > 1:
        ax.fill_between(steps, low, high, color=look['color'], alpha=0.18, linewidth=0)


def aligned(
    runs: Sequence[tuple[Sequence[float], Sequence[float]]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return all steps (S,) at which any run has a value, and values (R, S) last known there."""
    steps = np.unique(np.concatenate([np.asarray(x, float) for x, _ in runs]))
    values = np.full((len(runs), len(steps)), np.nan)
    for line, (x, y) in zip(values, runs, strict=True):
        latest = np.searchsorted(np.asarray(x, float), steps, side='right') - 1
        line[latest >= 0] = np.asarray(y, float)[latest[latest >= 0]]
    known = ~np.isnan(values).all(axis=0)
    return steps[known], values[:, known]


def png(figure: Figure) -> bytes:
    """Return the picture as PNG."""
    with rc_context(STYLE):
        file = io.BytesIO()
        figure.savefig(file, format='png', dpi=150)
    return file.getvalue()


def svg(figure: Figure) -> bytes:
    """Return the picture as SVG, the same bytes each time."""
    with rc_context(STYLE):
        file = io.BytesIO()
        figure.savefig(file, format='svg', metadata={'Date': None})
    return file.getvalue()
