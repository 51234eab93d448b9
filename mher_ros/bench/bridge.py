"""What it costs to have the arm behind topics, against the same task in one process."""

from __future__ import annotations

import sys
import time
from typing import Any

from mher_ros.bench.bars import ratio_bars
from mher_ros.bench.measured import Measured
from mher_ros.bench.memory import resident_memory
from mher_ros.experiments.table import Table
from mher_ros.ros.simulated_arm import simulated_arm
from mher_ros.tasks import make
import numpy as np

__all__ = ['measure']

TASK = 'fetch_reach'
ROUND = 200
"""Steps that one of the two does before it is the other's turn."""
TELL = 10
"""Rounds between two words on how far it is."""


def measure(steps: int) -> Measured:
    """
    Step the arm over topics in lockstep, and the task in this process, taking turns.

    Times are wall times without resets, which take about as long as two steps over topics and next
    to nothing in one process; ``ratio`` is that of the medians over rounds. Growth compares the
    last tenth of the rounds with the second (in the first, caches and buffers fill): of the median
    time of a step over topics in units of one in this process, and of memory.
    """
    rounds = max(20, -(-steps // ROUND))
    bridged, direct = np.empty(rounds), np.empty(rounds)
    memory = np.empty((rounds, 2))
    actions = np.random.default_rng(0).uniform(-1, 1, (ROUND, 4)).astype(np.float32)
    task = make(TASK)
    with simulated_arm(TASK) as (env, simulation):
        for index in range(rounds):
            for subject, seconds in ((env, bridged), (task, direct)):
                subject.reset(seed=index)
                started = time.perf_counter()
                for action in actions:
                    subject.step(action)
                seconds[index] = (time.perf_counter() - started) / ROUND
            memory[index] = resident_memory('self'), resident_memory(simulation)
            if index % TELL == TELL - 1:
                print(f'{(index + 1) * ROUND} of {rounds * ROUND} steps each', file=sys.stderr)
        repeats = env.link.repeats
    tenth = rounds // 10
    early, late = slice(tenth, 2 * tenth), slice(rounds - tenth, rounds)
    relative = bridged / direct
    figures: dict[str, Any] = {
        'ratio': float(np.median(direct) / np.median(bridged)),
        'steps': rounds * ROUND,
        'steps_per_second': float(1.0 / np.median(bridged)),
        'steps_per_second_in_process': float(1.0 / np.median(direct)),
        'overhead_microseconds': float(1e6 * (np.median(bridged) - np.median(direct))),
        'commands_repeated': repeats,
        'step_time_growth': float(np.median(relative[late]) / np.median(relative[early])),
        'memory_growth_mb': {
            name: float(np.median(memory[late, column]) - np.median(memory[early, column]))
            for column, name in enumerate(('env', 'sim_node'))
        },
        'memory_mb': dict(zip(('env', 'sim_node'), memory[-1].tolist(), strict=True)),
    }
    table = Table(
        f'{TASK}, steps in lockstep',
        ('', 'steps/s, this machine', 'ratio'),
        (
            ('over topics', f'{figures["steps_per_second"]:.0f}', f'{figures["ratio"]:.2f}'),
            ('in one process', f'{figures["steps_per_second_in_process"]:.0f}', '1.00'),
        ),
    )
    samples = {'seconds_over_topics': bridged.tolist(), 'seconds_in_process': direct.tolist()}
    return Measured(figures, (table,), samples, ratio_bars((table,)))
