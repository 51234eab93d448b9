"""Values of a YAML file, taken one by one and checked; a key that nobody takes is a mistake."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, overload, TypeVar

from mher_ros.options import OptionError

__all__ = ['Settings', 'SettingsError']

Vector3 = tuple[float, float, float]
Default = TypeVar('Default')

LARGEST = sys.float_info.max
TOPIC = re.compile(r'(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')
"""Relative, absolute or private."""
LONGEST_TOPIC = 200
"""What the middleware leaves of its 255, with a namespace before it."""
MOST_NAMED = 10
"""Keys in a sentence."""
NEEDED: Any = object()
"""Stands for the default of a key that must be there."""


class SettingsError(OptionError):
    """A key or value that does not fit; the message says what was expected and what came."""


class Settings:
    """One mapping of a YAML file. A key whose value is null counts as not there."""

    def __init__(self, content: Any, prefix: str = '') -> None:
        if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
            raise SettingsError(
                f'{prefix or "the file"} holds keys and values; got {shown(content)}'
            )
        self._content = {key: value for key, value in content.items() if value is not None}
        self._prefix = f'{prefix}.' if prefix else ''
        self._taken: set[str] = set()
        self._given = set(content)

    def keys(self) -> tuple[str, ...]:
        """List the keys that have a value."""
        return tuple(self._content)

    def section(self, key: str) -> Settings:
        """Return the mapping below a key; an empty one if it is not there."""
        return Settings(self._take(key, {}), self._prefix + key)

    def text(self, key: str, default: str = NEEDED) -> str:
        """Return a text."""
        value = self._take(key, default)
        if not _is_text(value):
            raise self._error(key, 'a text', value)
        return str(value).strip()

    def topic(self, key: str, default: str) -> str:
        """Return the name of a ROS topic."""
        value = self.text(key, default)
        if len(value) > LONGEST_TOPIC or not TOPIC.fullmatch(value) or '__' in value:
            raise self._error(key, 'the name of a ROS topic', value)
        return value

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        """Return one of several words."""
        value = self._take(key, NEEDED)
        if value not in choices:
            raise self._error(key, f'one of {", ".join(choices)}', value)
        return str(value)

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of different names, at least one."""
        value = self._take(key, NEEDED)
        names = isinstance(value, list) and all(_is_text(name) and name for name in value)
        if not names or not value or len(set(value)) < len(value):
            raise self._error(key, 'a list of different names', value)
        return tuple(value)

    def numbers(self) -> dict[str, float]:
        """Return all keys of this mapping, each with a number."""
        return {key: self.number(key) for key in self.keys()}

    @overload
    def number(
        self, key: str, default: float = ..., *, low: float = ..., high: float = ...
    ) -> float: ...

    @overload
    def number(
        self, key: str, default: None, *, low: float = ..., high: float = ...
    ) -> float | None: ...

    def number(
        self,
        key: str,
        default: float | None = NEEDED,
        *,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> float | None:
        """Return a finite number from ``low`` to ``high``."""
        value = self._take(key, default)
        if value is None:
            return None
        if not _is_number(value) or not low <= value <= high:
            bounds = f' from {low:g} to {high:g}' if (low, high) != (-math.inf, math.inf) else ''
            raise self._error(key, f'a finite number{bounds}', value)
        return float(value)

    @overload
    def vector3(self, key: str, default: Vector3 = ...) -> Vector3: ...

    @overload
    def vector3(self, key: str, default: None) -> Vector3 | None: ...

    def vector3(self, key: str, default: Vector3 | None = NEEDED) -> Vector3 | None:
        """Return three finite numbers."""
        value = self._take(key, default)
        if value is None:
            return None
        if (
            not isinstance(value, list | tuple)
            or len(value) != 3
            or not all(map(_is_number, value))
        ):
            raise self._error(key, 'three finite numbers [x, y, z]', value)
        x, y, z = map(float, value)
        return x, y, z

    def finish(self) -> None:
        """Raise SettingsError if there is a key that nobody has asked for."""
        unknown = sorted(self._given - self._taken)
        if unknown:
            named = ', '.join(repr(self._prefix + key) for key in unknown[:MOST_NAMED])
            more = f' and {len(unknown) - MOST_NAMED} more' if len(unknown) > MOST_NAMED else ''
            raise SettingsError(
                f'unknown key {named}{more}; the keys are {", ".join(sorted(self._taken))}'
            )

    def _take(self, key: str, default: Any) -> Any:
        self._taken.add(key)
        value = self._content.get(key, default)
        if value is NEEDED:
            raise SettingsError(f'{self._prefix}{key} is needed; it is missing')
        return value

    def _error(self, key: str, expected: str, value: Any) -> SettingsError:
        return SettingsError(f'{self._prefix}{key} takes {expected}; got {shown(value)}')


def shown(value: Any) -> str:
    """Return what came, for a sentence."""
    text = repr(value)
    return text if len(text) <= 200 else f'{text[:200]}...'


def _is_text(value: Any) -> bool:
    # What cannot be printed cannot be a name, nor be sent in a message.
    return isinstance(value, str) and value.isprintable()


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -LARGEST <= value <= LARGEST  # whole numbers may be beyond all floats
