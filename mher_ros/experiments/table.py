"""Text in cells, and how it is written."""

from __future__ import annotations

import dataclasses

__all__ = ['markdown', 'Table']


@dataclasses.dataclass(frozen=True)
class Table:
    """Text in cells."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    explained: str = ''


def markdown(table: Table) -> str:
    """Return the table as Markdown, without title and explanation."""
    rule = '|---' * len(table.header) + '|'
    lines = (f'| {" | ".join(cells)} |' for cells in (table.header, *table.rows))
    first, *others = lines
    return '\n'.join((first, rule, *others))
