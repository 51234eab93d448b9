"""How long policy_node takes to answer a joint state, against a node that does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import os
from pathlib import Path
import tempfile
from typing import Any

from matplotlib.figure import Figure
from mher_ros.bench.answer_times import histogram, summary, taken_by
from mher_ros.bench.bars import FIRST, OTHERS
from mher_ros.bench.cpu_load import busy_cores
from mher_ros.bench.deploy import deployed_policy
from mher_ros.bench.measured import Measured
from mher_ros.bench.resting_arm import RestingArm
from mher_ros.bench.timing import tell
from mher_ros.experiments.plots.style import panels
from mher_ros.experiments.table import Table
from mher_ros.ros.node_process import node_process
import numpy as np
import rclpy
from rclpy.context import Context

__all__ = ['measure']

ROBOT = 'fetch'
OUTPUTS = ('twist', 'joint_trajectory')
LOADS = {'both': (False, True), 'without': (False,), 'with': (True,)}
MODULES = {'policy': 'mher_ros.bench.noted_policy_node', 'echo': 'mher_ros.bench.echo_node'}
TARGETED = {'ratio': ('twist', 100, False), 'joint_ratio': ('joint_trajectory', 100, False)}
"""Conditions whose ratios have a name of their own: output, rate, load."""
WARM_UP = 1.0
"""Time at the start of each condition that does not count [s]."""
HEADER = (
    'output, states a second',
    'policy_node: median',
    'p99',
    'p99.9',
    'missed',
    'echo: median',
    'p99',
    'p99.9',
    'missed',
    'states',
    'ratio',
)
EXPLAINED = (
    'Microseconds of this machine from the receipt of a joint state, by the middleware, to the '
    'end of publishing its command; ratio of medians. Missed: states without a command before '
    'the next one. Of fewer than 1000 states, p99.9 is next to the longest time. Load: a process '
    'that never waits on every core.'
)


def measure(
    seconds: int, rates: Sequence[int], load: str, seed: int, policy: str | None = None
) -> Measured:
    """
    Publish the joint states of an arm that stays where it is, and look how fast they are answered.

    For each of ``OUTPUTS`` and each rate [Hz] a policy_node, with a goal where the tool is, and an
    echo_node with the same topics, QoS and way to wait get their states in turn, for ``seconds``
    without load and as long with (``load``: which of these).
    """
    path = Path(policy) if policy else deployed_policy(ROBOT, seed)
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    conditions: list[dict[str, Any]] = []
    samples: dict[str, Any] = {}
    context = Context()
    rclpy.init(args=[], context=context)
    try:
        for output in OUTPUTS:
            for rate in rates:
                found, taken = _measure_pair(context, path, output, rate, LOADS[load], seconds)
                conditions += found
                samples |= taken
    finally:
        context.try_shutdown()
    figures: dict[str, Any] = {}
    for name, condition in TARGETED.items():
        for one in conditions:
            if (one['output'], one['rate'], one['load']) == condition:
                figures[name] = one['ratio']
    figures |= {'seconds': seconds, 'conditions': conditions}
    rows = tuple(_row(one) for one in conditions)
    table = Table('From a joint state to its command', HEADER, rows, EXPLAINED)
    return Measured(figures, (table,), samples, _picture(conditions))


def _measure_pair(
    context: Context, policy: Path, output: str, rate: int, loads: Sequence[bool], seconds: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the figures of each load, and how many answers took how many microseconds."""
    parameters: dict[str, dict[str, str | float]] = {
        kind: {'output': output, 'command_rate': float(rate)} for kind in MODULES
    }
    parameters['policy'] |= {
        'robot': ROBOT,
        'policy': str(policy),
        'outside': 'project',
        'safety.goal_timeout': 0.0,
    }
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f'{kind}.npy' for kind in MODULES}
        with contextlib.ExitStack() as at_the_end:
            nodes = {}
            for kind, module in MODULES.items():
                # A name of its own each time: those that have ended are not forgotten at once.
                namespace = f'/{kind}_{output}_{rate}'
                nodes[namespace] = at_the_end.enter_context(
                    node_process(
                        str(files[kind]), parameters[kind], namespace=namespace, module=module
                    )
                )
            arm = at_the_end.enter_context(
                contextlib.closing(RestingArm(context, nodes, output, rate))
            )
            arm.wait_for_answers()
            for load in loads:
                tell(f'{_name(output, rate, load)}: {seconds} s')
                with busy_cores() if load else contextlib.nullcontext():
                    arm.tell(WARM_UP)
                    told[load] = arm.tell(seconds)
            growth = arm.memory_growth()
        answers = {kind: np.load(file) for kind, file in files.items()}
    found: list[dict[str, Any]] = []
    taken: dict[str, Any] = {}
    for load, times in told.items():
        both = {
            kind: (answers[kind], stamps)
            for kind, stamps in zip(MODULES, times.values(), strict=True)
        }
        found.append(
            _condition({kind: summary(*one) for kind, one in both.items()})
            | {'output': output, 'rate': rate, 'load': load, 'memory_growth_mb': growth}
            | {'states': len(both['policy'][1]) - 1}
        )
        taken[_name(output, rate, load)] = {
            f'answers_of_{kind}_by_microseconds': histogram(taken_by(*one))
            for kind, one in both.items()
        }
    return found, taken


def _condition(both: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {'ratio': both['policy']['median_us'] / both['echo']['median_us'], **both}


def _name(output: str, rate: int, load: bool) -> str:
    return f'{output}, {rate}{", load" if load else ""}'


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    cells = [_name(one['output'], one['rate'], one['load'])]
    for kind in MODULES:
        cells += [f'{one[kind][key]:.0f}' for key in ('median_us', 'p99_us', 'p999_us', 'missed')]
    return (*cells, str(one['states']), f'{one["ratio"]:.2f}')


def _picture(conditions: Sequence[dict[str, Any]]) -> Figure:
    """Return a line a node and condition, from its median over p99 to p99.9."""
    rows = len(conditions) // len(OUTPUTS)
    with panels(OUTPUTS, columns=2, size=(4.6, 0.9 + 0.42 * rows)) as (figure, axes):
        for output, ax in zip(OUTPUTS, axes, strict=True):
            shown = [one for one in conditions if one['output'] == output]
            for kind, name, colour, aside in (
                ('policy', 'policy_node', FIRST, -0.14),
                ('echo', 'echo', OTHERS, 0.14),
            ):
                places = np.arange(rows) + aside
                median, p99, p999 = (
                    [one[kind][key] for one in shown] for key in ('median_us', 'p99_us', 'p999_us')
                )
                ax.hlines(places, median, p999, color=colour, linewidth=1.4)
                for values, marker, label in (
                    (median, 'o', name),
                    (p99, '|', ''),
                    (p999, '>', ''),
                ):
                    ax.plot(values, places, marker, color=colour, markersize=7, label=label)
            ax.set_xscale('log')
            ax.xaxis.set_major_formatter('{x:.0f}')
            ax.set_xlabel('microseconds: median, p99, p99.9')
            labels = [f'{one["rate"]} Hz{", load" if one["load"] else ""}' for one in shown]
            ax.set_yticks(range(rows), labels)
            ax.invert_yaxis()
            ax.grid(axis='y', visible=False)
    return figure
