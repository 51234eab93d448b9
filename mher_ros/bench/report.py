"""The Markdown page of all benchmark results, with the targets."""

from collections.abc import Mapping
import os
from pathlib import Path
from typing import Any, NamedTuple

from mher_ros.bench.result import make_folder, markdown_section, read
from mher_ros.experiments.tables import markdown, Table
from mher_ros.files import write_atomically
from mher_ros.options import OptionError

BEGIN, END = '<!-- written by: mher bench all -->', '<!-- end of what mher bench all writes -->'
EMPTY = f'# Benchmarks\n\n{BEGIN}\n{END}\n'


def write_report(page: Path, folder: Path, summaries: Mapping[str, str]) -> None:
    """Write the results in ``folder`` between the two marks of the page; the rest stays."""
    before = page.read_text() if page.exists() else EMPTY
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise OptionError(f'{page}: expected the lines {BEGIN} and {END}')
    files = {name: folder / f'{name}.json' for name in summaries}
    found = {name: read(file) for name, file in files.items() if file.exists()}
    figures = {name: values for name, (values, _) in found.items()}
    machines = {
        '; '.join(f'{key}: {value}' for key, value in values['machine'].items() if key != 'code')
        for values in figures.values()
    }
    parts = ['\n'.join(f'Measured on: {machine}.' for machine in sorted(machines))]
    parts.append(markdown(target_table(figures)))
    relative = os.path.relpath(folder, page.parent)
    for name, summary in summaries.items():
        parts += [f'## `mher bench {name}`', f'{summary[0].upper()}{summary[1:]}.']
        if name not in found:
            parts.append('Not measured yet.')
            continue
        values, tables = found[name]
        parts += map(markdown_section, tables)
        if (folder / f'{name}.png').exists():
            parts.append(f'![{summary}]({relative}/{name}.png)')
        parts.append(f'{values["when"]}; [all samples]({relative}/{name}.json).')
    text = f'{head}{BEGIN}\n' + '\n\n'.join(parts) + f'\n{END}{tail}'
    make_folder(page.parent)
    write_atomically(page, text.encode())


class Target(NamedTuple):
    """The limit of a figure of a benchmark: an upper one if ``aim`` is below ``target``."""

    benchmark: str
    figure: str  # its key in the benchmark's file
    meaning: str
    target: float
    aim: float  # a better value than the target

    @property
    def at_most(self) -> bool:
        return self.aim < self.target

    def met(self, value: float) -> str:
        sign = 1.0 if self.at_most else -1.0
        if sign * value <= sign * self.aim:
            return 'aim reached'
        if sign * value <= sign * self.target:
            return 'met'
        return f'short by {100.0 * abs(value / self.target - 1.0):.1f} %'


STEPS, WALL = 'steps_ratio_vs_best_sb3', 'wall_ratio_vs_best_sb3'
UPDATE = 'mher_ratio_vs_sb3_batch_64'
TARGETS = (
    Target('learning', STEPS, "steps to 95 % on fetch_reach, over SB3's best", 1 / 8, 1 / 15),
    Target('learning', WALL, "wall time to that point, over SB3's best", 1 / 4, 1 / 8),
    Target('update', UPDATE, 'one mher update, batch 64, over one of SB3 DDPG+HER', 3.0, 1.5),
    Target('step', 'ratio', 'fetch_reach steps/s, over FetchReach-v4', 1.5, 1.6),
    Target('step', 'evaluation_ratio_vs_loop', '100 goals evaluated, over a plain loop', 3.0, 3.5),
    Target('bridge', 'ratio', 'lockstep over ROS, over one process', 0.6, 0.8),
    Target('latency', 'ratio_vs_rclpy', 'policy_node with twists, over an rclpy echo', 1.3, 1.1),
)


def target_table(figures: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the targets and the measured values; ``figures`` by benchmark."""
    rows = []
    for target in TARGETS:
        found = figures.get(target.benchmark, {})
        value, interval = found.get(target.figure), found.get(f'{target.figure}_interval')
        sign = '<=' if target.at_most else '>='
        measured = ('not measured', '')
        if value is not None:
            ends = ['inf' if end is None else f'{end:.3g}' for end in interval or ()]
            shown = f' [{", ".join(ends)}]' if ends else ''
            measured = f'{value:.3g}{shown}', target.met(value)
        wanted = (f'{sign} {target.target:.3g}', f'{sign} {target.aim:.3g}')
        rows.append((f'`{target.benchmark}`', target.meaning, *wanted, *measured))
    header = ('bench', 'figure', 'target', 'aim', 'measured [95 % interval]', '')
    return Table('Targets', header, tuple(rows))
