"""What a benchmark has found: for people, for programs, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from mher_ros.errors import MherError
from mher_ros.experiments.machine import machine_facts
from mher_ros.experiments.plots.style import png
from mher_ros.experiments.table import markdown, Table
from mher_ros.files import write_atomically

__all__ = ['BenchError', 'make_folder', 'Measured', 'read', 'text', 'to_dict', 'write']


class BenchError(MherError):
    """Something that keeps a benchmark from being made, or its file from being read."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """The findings of one benchmark."""

    figures: dict[str, Any]
    """Plain JSON values by the names that other programs look for; ratios first."""
    tables: tuple[Table, ...]
    samples: dict[str, Any]
    """What the figures are made of, one value a time it was measured."""
    picture: Figure | None = None


def text(measured: Measured) -> str:
    """Return the tables for people."""
    parts = []
    for table in measured.tables:
        parts += [part for part in (table.title, table.explained) if part]
        parts.append(_columns(table))
    return '\n\n'.join(parts)


def to_dict(name: str, measured: Measured, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return all of it as plain JSON values, and what was asked for."""
    return {
        'benchmark': name,
        **measured.figures,
        'tables': [dataclasses.asdict(table) for table in measured.tables],
        'when': datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        'arguments': dict(arguments),
        'machine': machine_facts(),
        'samples': measured.samples,
    }


def make_folder(folder: Path) -> None:
    """Make the folder that files are to be written into, unless it is there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f'cannot make the folder {folder}: {error.strerror}') from error


def write(name: str, values: Mapping[str, Any], picture: Figure | None, folder: Path) -> Path:
    """Write NAME.json, and NAME.png if there is a picture, into ``folder``; return the first."""
    if picture is not None:
        write_atomically(folder / f'{name}.png', png(picture))
    path = folder / f'{name}.json'
    write_atomically(path, (json.dumps(values, indent=1, allow_nan=False) + '\n').encode())
    return path


def read(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return what ``write`` wrote: the values, and its tables as Markdown."""
    try:
        values = json.loads(path.read_text())
        tables = [
            Table(
                table['title'],
                tuple(table['header']),
                tuple(tuple(row) for row in table['rows']),
                table['explained'],
            )
            for table in values['tables']
        ]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BenchError(f'{path} is not the file of a benchmark: {error!r}') from error
    return values, [_section(table) for table in tables]


def _section(table: Table) -> str:
    heads = [f'**{table.title}**'] if table.title else []
    return '\n\n'.join(part for part in (*heads, table.explained, markdown(table)) if part)


def _columns(table: Table) -> str:
    lines = (table.header, *table.rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    return '\n'.join(
        '  '.join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
