"""How long policy_node takes to answer a joint state, against a node that does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
import contextlib
import os
from pathlib import Path
import tempfile
from typing import Any

from matplotlib.figure import Figure
from mher_ros.bench.answer_times import ENOUGH, histogram, summary, taken_by
from mher_ros.bench.bars import FIRST, OTHERS
from mher_ros.bench.cpu_load import busy_cores
from mher_ros.bench.deploy import deployed_policy
from mher_ros.bench.measured import Measured
from mher_ros.bench.resting_arm import RestingArm
from mher_ros.bench.timing import tell
from mher_ros.experiments.plots.style import panels
from mher_ros.experiments.table import Table
from mher_ros.policy.run import load as load_policy
from mher_ros.ros.node_process import node_process
import numpy as np
import rclpy
from rclpy.context import Context

__all__ = ['findings', 'measure']

ROBOT = 'fetch'
OUTPUTS = ('twist', 'joint_trajectory')
LOADS = {'both': (False, True), 'without': (False,), 'with': (True,)}
POLICY, ECHO = 'mher_ros.bench.noted_policy_node', 'mher_ros.bench.echo_node'
NODES: dict[str, tuple[str, dict[str, Any]]] = {
    'policy': (POLICY, {'outside': 'project', 'safety.goal_timeout': 0.0}),
    'echo': (ECHO, {}),
    'rclpy': (ECHO, {'plain': True}),
}
"""Module and parameters of each rival."""
RCLPY_RATE = 100
"""The only rate with the third of them [Hz]; at others it would take time from the first two."""
TARGETED = {
    'ratio': ('ratio', 'twist', 100, False),
    'joint_ratio': ('ratio', 'joint_trajectory', 100, False),
    'ratio_vs_rclpy': ('ratio_vs_rclpy', 'twist', 100, False),
    'joint_ratio_vs_rclpy': ('ratio_vs_rclpy', 'joint_trajectory', 100, False),
}
"""Ratios that have a name of their own: which, of which output, rate and load."""
WARM_UP = 1
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
    'over plain rclpy',
    'over the echo',
)
EXPLAINED = (
    'Microseconds of this machine from the receipt of a joint state, by the middleware, to the '
    'end of publishing its command; at the end, the median of policy_node over that of others. '
    'The echo reads nothing of a state and answers with bytes made before, in which only the '
    "stamp of a twist is new: what waiting and publishing take. Plain rclpy makes rclpy's message "
    f'of the state and of the command, and computes nothing (at {RCLPY_RATE} Hz only). Missed: '
    'states that were not answered before the next one came. Of fewer than '
    f'{ENOUGH} states there is no p99.9. Load: a process that never waits on every core.'
)


def measure(
    seconds: int, rates: Sequence[int], load: str, seed: int, policy: str | None = None
) -> Measured:
    """
    Publish the joint states of an arm that stays where it is, and look how fast they are answered.

    For each of ``OUTPUTS`` and each rate [Hz] a policy_node, with a goal where the tool is, and an
    echo_node with the same topics and way to wait get their states in turn, for ``seconds``
    without load and as long with (``load``: which of these).
    """
    path = Path(policy) if policy else deployed_policy(ROBOT, seed)
    load_policy(path)  # Nodes take a while to say that they cannot.
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    conditions: list[dict[str, Any]] = []
    samples: dict[str, Any] = {}
    context = Context()
    rclpy.init(args=[], context=context)
    try:
        for output in OUTPUTS:
            for rate in rates:
                found, taken = _measure_rivals(context, path, output, rate, LOADS[load], seconds)
                conditions += found
                samples |= taken
    finally:
        context.try_shutdown()
    return findings(conditions, samples, seconds)


def findings(
    conditions: Sequence[dict[str, Any]], samples: dict[str, Any], seconds: int
) -> Measured:
    """Return what is told of figures by output, rate and load; a ratio not measured is None."""
    ratios = {
        (key, one['output'], one['rate'], one['load']): one[key]
        for one in conditions
        for key in ('ratio', 'ratio_vs_rclpy')
    }
    figures = {
        **{name: ratios.get(condition) for name, condition in TARGETED.items()},
        'seconds': seconds,
        'conditions': conditions,
    }
    rows = tuple(_row(one) for one in conditions)
    table = Table('From a joint state to its command', HEADER, rows, EXPLAINED)
    return Measured(figures, (table,), samples, _picture(conditions))


def _measure_rivals(
    context: Context, policy: Path, output: str, rate: int, loads: Sequence[bool], seconds: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the figures of each load, and how many answers took how many microseconds."""
    kinds = [kind for kind in NODES if kind != 'rclpy' or rate == RCLPY_RATE]
    common: dict[str, Any] = {'robot': ROBOT, 'output': output, 'command_rate': float(rate)}
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {kind: Path(folder) / f'{kind}.npy' for kind in kinds}
        with contextlib.ExitStack() as at_the_end:
            nodes = {}
            for kind in kinds:
                module, own = NODES[kind]
                parameters = common | own
                if kind == 'policy':
                    parameters['policy'] = str(policy)
                # A name of its own each time: those that have ended are not forgotten at once.
                namespace = f'/{kind}_{output}_{rate}'
                nodes[namespace] = at_the_end.enter_context(
                    node_process(str(files[kind]), parameters, namespace=namespace, module=module)
                )
            arm = at_the_end.enter_context(
                contextlib.closing(RestingArm(context, nodes, output, rate))
            )
            arm.wait_for_answers()
            for load in loads:
                tell(f'{_name(output, rate, load)}: {seconds} s')
                with busy_cores() if load else contextlib.nullcontext():
                    arm.tell(WARM_UP * rate)
                    # The last one ends the time of the one before, and is not looked at.
                    told[load] = arm.tell(seconds * rate + 1)
            growth = arm.memory_growth()
        answers = {kind: np.load(file) for kind, file in files.items()}
    found: list[dict[str, Any]] = []
    taken: dict[str, Any] = {}
    for load, times in told.items():
        rivals = {
            kind: (answers[kind], stamps)
            for kind, stamps in zip(kinds, times.values(), strict=True)
        }
        found.append(
            _condition({kind: summary(*one) for kind, one in rivals.items()})
            | {'output': output, 'rate': rate, 'load': load, 'memory_growth_mb': growth}
            | {'states': seconds * rate}
        )
        taken[_name(output, rate, load)] = {
            f'answers_of_{kind}_by_microseconds': histogram(taken_by(*one))
            for kind, one in rivals.items()
        }
    return found, taken


def _condition(rivals: dict[str, dict[str, Any]]) -> dict[str, Any]:
    ratios = {
        kind: rivals['policy']['median_us'] / one['median_us'] for kind, one in rivals.items()
    }
    return {'ratio': ratios['echo'], 'ratio_vs_rclpy': ratios.get('rclpy'), **rivals}


def _name(output: str, rate: int, load: bool) -> str:
    return f'{output}, {rate}{", load" if load else ""}'


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    cells = [_name(one['output'], one['rate'], one['load'])]
    for kind in ('policy', 'echo'):
        cells += [_cell(one[kind][key], 0) for key in ('median_us', 'p99_us', 'p999_us', 'missed')]
    ratios = (_cell(one[key], 2) for key in ('ratio_vs_rclpy', 'ratio'))
    return (*cells, str(one['states']), *ratios)


def _cell(value: float | None, digits: int) -> str:
    return '-' if value is None else f'{value:.{digits}f}'


def _picture(conditions: Sequence[dict[str, Any]]) -> Figure:
    """Return a line a node and condition, from its median over p99 to p99.9, if there is one."""
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
                    np.array([one[kind][key] for one in shown], float)  # None: NaN, not shown
                    for key in ('median_us', 'p99_us', 'p999_us')
                )
                ax.hlines(places, median, np.fmax(p99, p999), color=colour, linewidth=1.4)
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
