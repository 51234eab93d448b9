"""Ratios as bars."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from mher_ros.experiments.plots.style import panels
from mher_ros.experiments.table import Table

__all__ = ['ratio_bars']

FIRST, OTHERS = '#D55E00', '#9AA5AE'


def ratio_bars(tables: Sequence[Table]) -> Figure:
    """
    Return a panel a table, a bar a row: the ratio that its last cell begins with.

    The first row stands out.
    """
    size = (4.6, 0.5 + 0.34 * max(len(table.rows) for table in tables))
    with panels([table.title for table in tables], columns=2, size=size) as (figure, axes):
        for table, ax in zip(tables, axes, strict=True):
            names = [row[0] for row in table.rows]
            ratios = [row[-1].partition(' ')[0] for row in table.rows]
            values = [float(ratio) for ratio in ratios]
            colours = [FIRST] + [OTHERS] * (len(names) - 1)
            bars = ax.barh(names, values, color=colours)
            ax.bar_label(bars, labels=ratios, padding=3)
            ax.set_xlim(0.0, 1.15 * max(values))
            ax.invert_yaxis()
            ax.grid(axis='y', visible=False)
            ax.set_xlabel(table.header[-1])
    return figure
