"""How cost grows with what one may choose: replay, ensemble, rollout, batch, goals, arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from mher_ros.bench.measured import BenchError, Measured
from mher_ros.bench.scale_axes import AXES, Axis, replay_memory
from mher_ros.bench.timing import take_turns, tell
from mher_ros.experiments.plots.style import panels
from mher_ros.experiments.table import Table
import numpy as np
import torch

__all__ = ['along', 'figures_of', 'measure', 'ratios', 'table_of']

WIDE = 8.0
"""Ratios that lie further apart than this are drawn on a scale of powers."""


def measure(rounds: int, axes: Sequence[str] | None = None) -> Measured:
    """
    Time an update, an evaluation and a step of training along each axis, values taking turns.

    All other choices are as the paper has them for fetch_reach; networks run on one thread, arms
    and goals on all cores. Replays hold random episodes, large ones the same many times.
    """
    unknown = [name for name in axes or () if name not in AXES]
    if unknown:
        raise BenchError(f'scale has no axis {unknown[0]!r}; it has {", ".join(AXES)}')
    torch.set_num_threads(1)
    chosen = tuple(axes or AXES)
    # First of all: what earlier parts have freed could be handed out again, unseen.
    memory = replay_memory(AXES['replay'].values) if 'replay' in chosen else {}
    seconds: dict[str, dict[int, list[float]]] = {}
    for name in chosen:
        tell(AXES[name].title)
        seconds[name] = along(AXES[name], rounds)
    tables = tuple(table_of(AXES[name], found, memory) for name, found in seconds.items())
    samples = {
        AXES[name].figure.replace('_ratio_', '_seconds_'): {
            str(value): turns for value, turns in found.items()
        }
        for name, found in seconds.items()
    }
    return Measured(figures_of(seconds, memory), tables, samples, _picture(seconds))


def along(axis: Axis, rounds: int) -> dict[int, list[float]]:
    """Return the seconds that one of the things timed takes at each value."""
    subjects = {value: axis.prepare(value) for value in axis.values}
    turns = take_turns(
        {str(value): run for value, (run, _) in subjects.items()},
        max(1, rounds // axis.every),
        axis.clock,
    )
    return {
        value: [turn / count for turn in turns[str(value)]]
        for value, (_, count) in subjects.items()
    }


def ratios(seconds: Mapping[int, list[float]], default: int) -> dict[int, float]:
    """Return the median at each value over that at the default."""
    unit = np.median(seconds[default])
    return {value: float(np.median(samples) / unit) for value, samples in seconds.items()}


def figures_of(
    seconds: Mapping[str, Mapping[int, list[float]]], memory: Mapping[int, float]
) -> dict[str, Any]:
    """Return the figures, given seconds by axis and value, and memory by transitions [MB]."""
    found: dict[str, Any] = {}
    if 'replay' in seconds:
        growth = ratios(seconds['replay'], 10_000)
        found['replay_mb_at_1e6'] = memory[1_000_000]
        found['update_ratio_1e6_vs_1e4'] = growth[1_000_000]
        found['replay_mb'] = {str(count): value for count, value in memory.items()}
    for name, samples in seconds.items():
        growth = ratios(samples, AXES[name].default)
        found[AXES[name].figure] = {str(value): ratio for value, ratio in growth.items()}
    return found


def table_of(axis: Axis, seconds: Mapping[int, list[float]], memory: Mapping[int, float]) -> Table:
    """Return a row a value; with memory, where the axis is the replay's."""
    growth = ratios(seconds, axis.default)
    held = memory if axis is AXES['replay'] else {}
    rows = tuple(
        (
            f'{value:,}',
            *((f'{held[value]:.1f}',) if held else ()),
            _milliseconds(float(np.median(samples))),
            f'{growth[value]:.2f}',
        )
        for value, samples in seconds.items()
    )
    header = (
        axis.choice,
        *(('MB',) if held else ()),
        f'ms {axis.timed}, this machine',
        f'over {axis.default:,}',
    )
    return Table(axis.title, header, rows, axis.explained)


def _milliseconds(seconds: float) -> str:
    return f'{1e3 * seconds:.3g}' if seconds < 1.0 else f'{1e3 * seconds:,.0f}'


def _picture(seconds: Mapping[str, Mapping[int, list[float]]]) -> Figure:
    with panels([AXES[name].title for name in seconds], columns=3) as (figure, axes):
        for (name, samples), ax in zip(seconds.items(), axes, strict=True):
            axis = AXES[name]
            growth = ratios(samples, axis.default)
            ax.axhline(1.0, color='#9AA5AE', linewidth=1.0)
            ax.plot(list(growth), list(growth.values()), color='#D55E00', marker='o')
            if min(growth) > 0:
                ax.set_xscale('log')
            if max(growth.values()) > WIDE * min(growth.values()):
                ax.set_yscale('log', base=2)
                ax.yaxis.set_major_formatter('{x:g}')
            else:
                ax.set_ylim(0.0, 1.15 * max(growth.values()))
            ax.set_xticks(list(growth), [f'{value:,}' for value in growth])
            ax.minorticks_off()
            ax.set_xlabel(axis.choice)
            ax.set_ylabel(f'time over that of {axis.default:,}')
    return figure
