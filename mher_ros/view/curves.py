"""Learning curves on the page."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
import viser
from viser import uplot

__all__ = ['Curves']

ASPECT = 2.0
"""Both plots are in sight beside the lines and buttons of a run."""
PADDING = (8, 14, 0, 0)
"""Above, right, below, left [pixels]: room for half of the outermost numbers."""
STEPS = 'environment steps'


class Curves:
    """Success rate and final error over environment steps."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._success = _plot(server, 'goals reached [%]', '#d55e00', (0.0, 105.0))
        self._errors = {
            unit: _plot(server, f'final error [{unit}]', '#0072b2', None) for unit in ('mm', '1')
        }

    def show(self, rows: NDArray[np.float64], unit: str) -> None:
        """
        Draw rows (n, 3) of steps, success rate and final error in ``unit``; none: no plots.

        Errors in metres are shown in millimetres.
        """
        factor, own = (1000.0, 'mm') if unit == 'm' else (1.0, '1')
        _show(self._success, rows[:, 0], 100.0 * rows[:, 1])
        for name, plot in self._errors.items():
            shown = rows if name == own else rows[:0]
            _show(plot, shown[:, 0], factor * shown[:, 2])


def _show(plot: viser.GuiUplotHandle, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    if plot.visible != (len(x) > 0):
        plot.visible = len(x) > 0
    if len(x):
        plot.data = (x.copy(), y.copy())


def _plot(
    server: viser.ViserServer, label: str, colour: str, span: tuple[float, float] | None
) -> viser.GuiUplotHandle:
    scale = uplot.Scale(auto=True) if span is None else uplot.Scale(auto=False, range=span)
    return server.gui.add_uplot(
        (np.zeros(1), np.zeros(1)),
        (
            uplot.Series(label=STEPS),
            uplot.Series(
                label=label,
                stroke=colour,
                width=2,
                points=uplot.Series_Points(show=True, size=6),
            ),
        ),
        scales={'x': uplot.Scale(time=False, auto=True), 'y': scale},
        # Not beside the axes, where there is no room for it.
        title=f'{label} over {STEPS}',
        axes=(uplot.Axis(), uplot.Axis()),
        legend=uplot.Legend(show=False),
        aspect=ASPECT,
        padding=PADDING,
        visible=False,
    )
