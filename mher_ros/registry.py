"""Registries of tasks, algorithms and relabelling strategies; users can add entries."""

from collections.abc import Iterator
import importlib
from typing import Any, Generic, TypeVar

from mher_ros.options import OptionError

Entry = TypeVar('Entry')

_trusted: set[str] = set()


class Registry(Generic[Entry]):
    """Entries by name; an entry or a name ``'module:attribute'`` is imported on first use."""

    def __init__(self, kind: str, entries: dict[str, Entry | str]) -> None:
        self._kind, self._entries = kind, dict(entries)

    def register(self, name: str, entry: Entry | str) -> None:
        """Add an entry; OptionError if the name is in use or not valid."""
        if not name or ':' in name or name in self._entries:
            raise OptionError(f'a new {self._kind} needs an unused name without colon: {name!r}')
        self._entries[name] = entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Entry:
        """Return the entry of a name or of ``'module:attribute'``; OptionError if unknown."""
        # A name from a file may have any type.
        if not isinstance(name, str) or (name not in self._entries and ':' not in name):
            raise OptionError(
                f'unknown {self._kind} {name!r}; there are {", ".join(self._entries)}, or '
                'module:name for your own'
            )
        entry = self._entries.get(name, name)
        return import_object(entry) if isinstance(entry, str) else entry


def trust(*names: str | None) -> None:
    """Allow files to contain these names, because the user gave them."""
    _trusted.update(filter(None, names))


def check_trusted(*names: str) -> None:
    """Raise OptionError for a name in a file that would import a module."""
    for name in names:
        if ':' in name and name not in _trusted:
            raise OptionError(f'the file would import {name}: give this name if you trust it')


def import_object(path: str) -> Any:
    """Return the object ``'module:attribute'``; OptionError if it does not exist."""
    module, _, attribute = path.partition(':')
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{module}.'.startswith(f'{error.name}.'):
            raise  # another module, which this one imports
        raise OptionError(f'{path}: there is no module {error.name!r}') from None
    except (AttributeError, ValueError):
        raise OptionError(f'{path}: module {module!r} has no {attribute!r}') from None
