"""The page that shows all benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
import os
from pathlib import Path
from typing import Any

from mher_ros.bench.measured import BenchError, make_folder, read
from mher_ros.bench.targets import target_table
from mher_ros.experiments.table import markdown
from mher_ros.files import write_atomically

__all__ = ['write_document']

BEGIN, END = '<!-- written by: mher bench all -->', '<!-- end of what mher bench all writes -->'
EMPTY = f'# Benchmarks\n\n{BEGIN}\n{END}\n'


def write_document(page: Path, folder: Path, summaries: Mapping[str, str]) -> None:
    """
    Put what ``folder`` holds of the benchmarks in ``summaries`` into the page.

    What stands before and after the two marks of the page is left as it is.
    """
    before = page.read_text() if page.exists() else EMPTY
    head, begin, rest = before.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BenchError(f'{page} should hold the lines {BEGIN} and {END}, and does not')
    found: dict[str, tuple[dict[str, Any], list[str]]] = {
        name: read(folder / f'{name}.json')
        for name in summaries
        if (folder / f'{name}.json').exists()
    }
    parts = [_machine(found), markdown(target_table({name: v for name, (v, _) in found.items()}))]
    beside = os.path.relpath(folder, page.parent)
    for name, summary in summaries.items():
        parts += [f'## `mher bench {name}`', f'{summary[0].upper()}{summary[1:]}.']
        if name not in found:
            parts.append('Not measured yet.')
            continue
        values, tables = found[name]
        parts += tables
        if (folder / f'{name}.png').exists():
            parts.append(f'![{summary}]({beside}/{name}.png)')
        parts.append(f'{values["when"]}; [all samples]({beside}/{name}.json).')
    text = f'{head}{BEGIN}\n' + '\n\n'.join(parts) + f'\n{END}{tail}'
    make_folder(page.parent)
    write_atomically(page, text.encode())


def _machine(found: Mapping[str, tuple[dict[str, Any], list[str]]]) -> str:
    machines = {
        '; '.join(f'{key}: {value}' for key, value in values['machine'].items() if key != 'code')
        for values, _ in found.values()
    }
    return '\n'.join(f'Measured on: {machine}.' for machine in sorted(machines))
