"""What it costs to have the arm behind topics, against the same task in one process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.echo_arm import RoundTrip
from mher_ros.bench.measured import Measured
from mher_ros.bench.memory import resident_memory
from mher_ros.bench.timing import tell
from mher_ros.experiments.table import Table
from mher_ros.ros.node_process import node_process
from mher_ros.ros.simulated_arm import simulated_arm
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray
import rclpy
from rclpy.context import Context

__all__ = ['figures_of', 'measure']

TASK = 'fetch_reach'
ROUND = 200
"""Steps that one of the rivals does before it is the next one's turn."""
TELL = 10
"""Rounds between two words on how far it is."""
BRIDGED, DIRECT, BARE = 'over topics', 'in one process', 'bare round trip'
EXPLAINED = (
    'Over topics a step is a command to sim_node and its state back; a bare round trip is the '
    'same two messages, sent and awaited in the same way, with nobody who reads, writes or '
    'simulates anything. All of them on one core. Resets are left out, which favours topics: a '
    'reset takes about as long as two steps there, and as a third of one in one process; with a '
    'reset every 50 steps, as in training, the first ratio is 3 to 4 % less.'
)

Rounds = NDArray[np.float64]


def measure(steps: int) -> Measured:
    """
    Step the arm over topics in lockstep, the task in this process, and bare messages, in turn.

    Times are wall times without resets.
    """
    rounds = max(20, -(-steps // ROUND))
    actions = np.random.default_rng(0).uniform(-1, 1, (ROUND, 4)).astype(np.float32)
    seconds = {name: np.empty(rounds) for name in (BRIDGED, DIRECT, BARE)}
    memory = {name: np.empty(rounds) for name in ('env', 'sim_node')}
    task = make(TASK)
    # The arm first: it brings this process to the core that both sides share, and with it
    # whatever is started from here.
    with simulated_arm(TASK) as (env, simulation), _round_trip(task.interface.frame) as bare:
        rivals: dict[str, Any] = {BRIDGED: env, DIRECT: task, BARE: bare}
        for index in range(rounds):
            for name, rival in rivals.items():
                rival.reset(seed=index)
                started = time.perf_counter()
                for action in actions:
                    rival.step(action)
                seconds[name][index] = (time.perf_counter() - started) / ROUND
            for name, process in (('env', 'self'), ('sim_node', simulation)):
                memory[name][index] = resident_memory(process)
            if index % TELL == TELL - 1:
                tell(f'{(index + 1) * ROUND} of {rounds * ROUND} steps each')
        repeats = env.link.repeats
    figures = figures_of(seconds, memory) | {'commands_repeated': repeats}
    samples = {f'seconds {name}': values.tolist() for name, values in seconds.items()}
    table = _table(figures)
    return Measured(figures, (table,), samples, ratio_bars((table,)))


def figures_of(seconds: Mapping[str, Rounds], memory: Mapping[str, Rounds]) -> dict[str, Any]:
    """
    Return the figures of step times [s] and memory [MB], one value a round.

    Times are medians over rounds. ``ratio_possible`` is that of a bridge which adds nothing to a
    step but the bare round trip. Growth compares the last tenth of the rounds with the second (in
    the first, caches and buffers fill): of the time of a step over topics in units of one in this
    process, and of memory.
    """
    bridged, direct, bare = (float(np.median(seconds[name])) for name in (BRIDGED, DIRECT, BARE))
    rounds = len(seconds[BRIDGED])
    tenth = rounds // 10
    early, late = slice(tenth, 2 * tenth), slice(rounds - tenth, rounds)
    relative = seconds[BRIDGED] / seconds[DIRECT]
    return {
        'ratio': direct / bridged,
        'ratio_vs_round_trip': bare / bridged,
        'ratio_possible': direct / (direct + bare),
        'steps': rounds * ROUND,
        'steps_per_second': 1.0 / bridged,
        'steps_per_second_in_process': 1.0 / direct,
        'round_trips_per_second': 1.0 / bare,
        'overhead_microseconds': 1e6 * (bridged - direct),
        'overhead_beyond_round_trip_microseconds': 1e6 * (bridged - direct - bare),
        'step_time_growth': float(np.median(relative[late]) / np.median(relative[early])),
        'memory_growth_mb': {
            name: float(np.median(values[late]) - np.median(values[early]))
            for name, values in memory.items()
        },
        'memory_mb': {name: float(values[-1]) for name, values in memory.items()},
    }


@contextlib.contextmanager
def _round_trip(frame: str) -> Iterator[RoundTrip]:
    namespace = '/bare'
    context = Context()
    with node_process(TASK, {}, namespace=namespace, module='mher_ros.bench.echo_arm'):
        rclpy.init(args=[], context=context)
        try:
            node = rclpy.create_node('round_trip', context=context)
            bare = RoundTrip(node, frame, namespace)
            bare.step(None)  # when the two have found each other
            yield bare
            node.destroy_node()
        finally:
            context.try_shutdown()


def _table(figures: Mapping[str, Any]) -> Table:
    direct = figures['steps_per_second_in_process']
    rates = {
        BRIDGED: figures['steps_per_second'],
        DIRECT: direct,
        BARE: figures['round_trips_per_second'],
        'one process and bare round trip': figures['ratio_possible'] * direct,
    }
    rows = tuple(
        (name, f'{1e6 / rate:.0f} us', f'{rate:.0f}', f'{rate / direct:.2f}')
        for name, rate in rates.items()
    )
    header = ('', 'one takes', 'a second, this machine', 'over one process')
    return Table(f'{TASK}, steps in lockstep', header, rows, EXPLAINED)
