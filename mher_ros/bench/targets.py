"""What we want the benchmarks to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from mher_ros.experiments.table import Table

__all__ = ['TARGETS', 'Target', 'target_table']


@dataclasses.dataclass(frozen=True)
class Target:
    """A figure of a benchmark, and how large it should be at most or at least."""

    benchmark: str
    figure: str
    """Its key in the benchmark's file."""
    meaning: str
    target: float
    aim: float
    """What would please us: beyond the target."""

    @property
    def at_most(self) -> bool:
        """Whether less is better."""
        return self.aim < self.target

    def met(self, value: float) -> str:
        """Return how far it is met, in words."""
        sign = 1.0 if self.at_most else -1.0
        if sign * value <= sign * self.aim:
            return 'aim reached'
        if sign * value <= sign * self.target:
            return 'met'
        return f'short by {100.0 * abs(value / self.target - 1.0):.1f} %'


TARGETS = (
    Target(
        'learning',
        'steps_ratio_vs_best_sb3',
        "steps to 95 % on fetch_reach, over SB3's best",
        1 / 8,
        1 / 15,
    ),
    Target(
        'learning',
        'wall_ratio_vs_best_sb3',
        "wall time to that point, over SB3's best",
        1 / 4,
        1 / 8,
    ),
    Target(
        'update',
        'mher_ratio_vs_sb3_batch_64',
        'one mher update, batch 64, over one of SB3 DDPG+HER',
        3.0,
        1.5,
    ),
    Target('step', 'ratio', 'fetch_reach steps/s over the shipped one', 1.5, 1.6),
    Target('step', 'evaluation_ratio_vs_loop', '100 goals evaluated, over a plain loop', 3.0, 3.5),
    Target('bridge', 'ratio', 'lockstep over ROS, over one process', 0.6, 0.8),
    Target(
        'latency',
        'ratio_vs_rclpy',
        'policy_node answering with twists, over an rclpy node that echoes',
        1.3,
        1.1,
    ),
    Target('latency', 'ratio', 'the same, over an echo that does not even read', 1.3, 1.1),
    Target('page', 'ratio', 'latency of policy_node with the page open, over without', 1.1, 1.05),
    Target(
        'scale', 'replay_mb_at_1e6', 'memory of 1e6 transitions of fetch_reach [MB]', 200.0, 130.0
    ),
)


def target_table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return what was measured beside what was wanted; ``figures`` by benchmark."""
    rows = []
    for target in TARGETS:
        found = figures.get(target.benchmark, {})
        value, interval = found.get(target.figure), found.get(f'{target.figure}_interval')
        sign = '<=' if target.at_most else '>='
        measured = ('not measured', '')
        if value is not None:
            measured = f'{value:.3g}{_interval_text(interval)}', target.met(value)
        rows.append(
            (
                f'`{target.benchmark}`',
                target.meaning,
                f'{sign} {target.target:.3g}',
                f'{sign} {target.aim:.3g}',
                *measured,
            )
        )
    header = ('bench', 'figure', 'target', 'aim', 'measured [95 % interval]', '')
    return Table('Targets', header, tuple(rows))


def _interval_text(interval: Sequence[float | None] | None) -> str:
    if interval is None:
        return ''
    low, high = ('inf' if end is None else f'{end:.3g}' for end in interval)
    return f' [{low}, {high}]'
