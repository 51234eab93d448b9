"""The result of a benchmark: figures, tables, samples and a picture, and its files."""

from collections.abc import Mapping
import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from mher_ros.experiments.plots import png
from mher_ros.experiments.provenance import machine_facts
from mher_ros.experiments.tables import markdown, Table
from mher_ros.files import write_atomically
from mher_ros.options import OptionError, os_errors_as_option_errors


@dataclasses.dataclass(frozen=True)
class Result:
    figures: dict[str, Any]  # JSON values by name, for programs; ratios first
    tables: tuple[Table, ...]
    samples: dict[str, Any]  # the single measurements from which the figures are computed
    picture: Figure | None = None
    variant: str = ''  # end of the name of its files, if it is not that of the usual arguments


def to_dict(name: str, result: Result, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        'benchmark': name,
        **result.figures,
        'tables': [dataclasses.asdict(table) for table in result.tables],
        'when': datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%d %H:%M UTC'),
        'arguments': dict(arguments),
        'machine': machine_facts(),
        'samples': result.samples,
    }


def make_folder(folder: Path) -> None:
    with os_errors_as_option_errors(f'cannot make the folder {folder}'):
        folder.mkdir(parents=True, exist_ok=True)


def write(name: str, values: Mapping[str, Any], picture: Figure | None, folder: Path) -> Path:
    """Write NAME.png, if there is a picture, and NAME.json into ``folder``; return the latter."""
    if picture is not None:
        write_atomically(folder / f'{name}.png', png(picture))
    path = folder / f'{name}.json'
    write_atomically(path, (json.dumps(values, indent=1, allow_nan=False) + '\n').encode())
    return path


def read(path: Path) -> tuple[dict[str, Any], list[Table]]:
    """Return the values that ``write`` wrote, and their tables."""
    try:
        values = json.loads(path.read_text())
        return values, [Table(**one) for one in values['tables']]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise OptionError(f'{path} is not the file of a benchmark: {error!r}') from error


def markdown_section(table: Table) -> str:
    title = f'**{table.title}**' if table.title else ''
    return '\n\n'.join(filter(None, (title, table.explained, markdown(table))))
