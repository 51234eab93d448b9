"""Declared options: a frozen dataclass whose fields have a help text and a range."""

from collections.abc import Callable, Iterable, Iterator
import contextlib
import dataclasses
import math
import re
import sys
from typing import Any, TypeVar

from mher_ros.errors import MherError

Options = TypeVar('Options')


class OptionError(MherError, ValueError):
    """A key or value is wrong; the message says what was expected and what was given."""


@contextlib.contextmanager
def os_errors_as_option_errors(text: str) -> Iterator[None]:
    """Turn an OSError, as of a folder that the user chose, into one that starts with ``text``."""
    try:
        yield
    except OSError as error:
        raise OptionError(f'{text}: {error.strerror}') from error


def option(
    default: Any,
    help: str,  # noqa: A002  (the name argparse and rclpy users know)
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """Declare a field of an options dataclass; ``low`` and ``high`` are inclusive."""
    metadata = {'help': help, 'low': low, 'high': high, 'choices': choices}
    return dataclasses.field(default=default, metadata=metadata)


def check(options: Any, prefix: str = '') -> None:
    """Raise OptionError unless every value of ``options`` has its type and lies in its range."""
    for field in dataclasses.fields(options):
        value, key = getattr(options, field.name), prefix + field.name
        if dataclasses.is_dataclass(value):
            check(value, key + '.')
            continue
        if not field.metadata:
            continue
        _check_type(key, value, field.default)
        for number in value if isinstance(value, tuple) else (value,):
            _check_range(key, number, field.metadata)


def override(options: Options, changes: dict[str, Any], prefix: str = '') -> Options:
    """Return a copy of ``options`` with ``changes`` (dotted key to value) made and checked."""
    # A text is read as the field's type: '4' as 4.0, '64,64' as (64, 64).
    fields = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    nested: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for key, value in changes.items():
        head, _, rest = key.partition('.')
        if head not in fields or not _is_key(fields[head], getattr(options, head), rest):
            known = ', '.join(sorted(name for name, _, _ in describe(options, prefix)))
            raise OptionError(f'unknown key {prefix + key!r}; the keys are {known}')
        if rest:
            nested.setdefault(head, {})[rest] = value
        else:
            values[head] = _read(prefix + key, value, fields[head].default)
    for head, inner in nested.items():
        values[head] = override(getattr(options, head), inner, f'{prefix}{head}.')
    changed = dataclasses.replace(options, **values)  # type: ignore[type-var]
    check(changed, prefix)
    return changed


def dotted(values: dict[str, Any]) -> dict[str, Any]:
    """Return options of nested sections by dotted key, such as ``tracker.noise``."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        inner = dotted(value) if isinstance(value, dict) else {'': value}
        found |= {f'{key}.{name}' if name else key: one for name, one in inner.items()}
    return found


def read_changes(pairs: Iterable[str], name: str, sign: str = '=') -> dict[str, str]:
    """Return the changes that texts such as ``agent.batch=256`` ask for under ``name``."""
    changes: dict[str, str] = {}
    for pair in pairs:
        key, found, value = pair.partition(sign)
        if not found or not key:
            raise OptionError(f'{name} takes key{sign}value, got {pair!r}')
        changes[key] = value
    return changes


def describe(options: Any, prefix: str = '') -> list[tuple[str, Any, str]]:
    """List (dotted key, value, help) of every declared option."""
    rows: list[tuple[str, Any, str]] = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            rows += describe(value, f'{prefix}{field.name}.')
        elif field.metadata:
            rows.append((prefix + field.name, value, field.metadata['help']))
    return rows


def option_text(value: Any) -> str:
    """Return the value as ``override`` reads it."""
    return ','.join(map(str, value)) if isinstance(value, tuple) else str(value)


def _is_key(field: Any, value: Any, rest: str) -> bool:
    """Return whether the field is a section with more to its key, or a declared option."""
    return bool(rest) if dataclasses.is_dataclass(value) else not rest and bool(field.metadata)


def _read(key: str, value: Any, default: Any) -> Any:
    try:
        if not isinstance(value, str) or isinstance(default, str):
            if isinstance(default, float) and isinstance(value, int | float):
                return value if isinstance(value, bool) else float(value)
            if isinstance(default, tuple) and isinstance(value, list):
                return tuple(value)
            return value
        if isinstance(default, bool):
            return {'true': True, 'false': False}[value.lower()]
        if isinstance(default, tuple):
            kind = type(default[0]) if default else float
            return tuple(kind(part) for part in value.split(',') if part.strip())
        return type(default)(value)
    except (KeyError, OverflowError, ValueError):
        raise OptionError(f'{key} takes {_kind(default)}, got {value!r}') from None


def _check_type(key: str, value: Any, default: Any) -> None:
    fits = type(value) is type(default)
    if fits and isinstance(value, tuple) and default:
        fits = bool(value) and all(type(part) is type(default[0]) for part in value)
    if not fits:
        raise OptionError(f'{key} takes {_kind(default)}, got {value!r}')


def _check_range(key: str, value: Any, limits: Any) -> None:
    choices, low, high = limits['choices'], limits['low'], limits['high']
    if choices is not None and value not in choices:
        raise OptionError(f'{key} takes one of {", ".join(map(str, choices))}; got {value!r}')
    if isinstance(value, float) and not math.isfinite(value):
        raise OptionError(f'{key} takes a finite number, got {value}')
    if (low is not None and value < low) or (high is not None and value > high):
        bounds = {'at least': low, 'at most': high}.items()
        wanted = ' and '.join(f'{word} {end}' for word, end in bounds if end is not None)
        raise OptionError(f'{key} must be {wanted}, got {value}')


def _kind(default: Any) -> str:
    if isinstance(default, tuple):
        return f'numbers separated by commas (such as {option_text(default)})'
    names = {bool: 'true or false', int: 'a whole number', float: 'a number', str: 'a word'}
    return names[type(default)]


LARGEST = sys.float_info.max
TOPIC = re.compile(r'(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*')
"""Relative, absolute or private."""
MAX_TOPIC = 200  # of the middleware's 255 characters: a namespace comes before it
MAX_NAMED = 10  # keys in an error message
NEEDED: Any = object()  # stands for the default of a key that must be there


class SettingsError(OptionError):
    """A key or value is wrong; the message says what was expected and what was given."""


class Settings:
    """One mapping of a YAML file; a key that is missing or null has its default."""

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

    def section(self, key: str) -> 'Settings':
        """Return the mapping below a key; an empty one if it is missing."""
        content = self._take(key, {}, lambda value: True, '')
        return Settings(content, self._prefix + key)

    def text(self, key: str, default: str = NEEDED) -> str:
        return str(self._take(key, default, _is_text, 'a text')).strip()

    def topic(self, key: str, default: str) -> str:
        return str(self._take(key, default, _is_topic, 'the name of a ROS topic')).strip()

    def choice(self, key: str, choices: tuple[str, ...], default: str = NEEDED) -> str:
        expected = f'one of {", ".join(choices)}'
        return str(self._take(key, default, lambda value: value in choices, expected))

    def words(self, key: str, default: tuple[str, ...] = NEEDED) -> tuple[str, ...]:
        """Return a list of different names, at least one, or the default."""
        return tuple(self._take(key, default, _are_names, 'a list of different names'))

    def number(
        self, key: str, default: Any = NEEDED, low: float = -math.inf, high: float = math.inf
    ) -> Any:
        """Return a float from ``low`` to ``high``, or the default, which may be None."""
        bounds = f' from {low:g} to {high:g}' if (low, high) != (-math.inf, math.inf) else ''
        value = self._take(
            key,
            default,
            lambda given: _is_number(given) and low <= given <= high,
            f'a finite number{bounds}',
        )
        return None if value is None else float(value)

    def range(
        self, key: str, default: Any = NEEDED, low: float = -math.inf, high: float = math.inf
    ) -> tuple[float, float]:
        """Return the two ends of a range within ``low`` and ``high``."""
        one, other = self._take(
            key,
            default if default is NEEDED else list(default),
            lambda given: _is_range(given) and low <= given[0] <= given[1] <= high,
            f'two ascending numbers [low, high] from {low:g} to {high:g}',
        )
        return float(one), float(other)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        return bool(
            self._take(key, default, lambda value: isinstance(value, bool), 'true or false')
        )

    def pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return pairs of different names; none if the key is missing."""
        expected = 'a list of pairs of different names, such as [[a, b]]'
        found = self._take(key, [], _are_pairs, expected)
        return tuple((one, other) for one, other in found)

    def vector3(self, key: str, default: Any = NEEDED) -> Any:
        """Return a tuple of three floats, or the default, which may be None."""
        value = self._take(key, default, _is_vector3, 'three finite numbers [x, y, z]')
        return None if value is None else tuple(map(float, value))

    def finish(self) -> None:
        """Raise SettingsError if there is a key that was not read."""
        unknown = sorted(self._given - self._taken)
        if unknown:
            named = ', '.join(repr(self._prefix + key) for key in unknown[:MAX_NAMED])
            more = f' and {len(unknown) - MAX_NAMED} more' if len(unknown) > MAX_NAMED else ''
            raise SettingsError(
                f'unknown key {named}{more}; the keys are {", ".join(sorted(self._taken))}'
            )

    def _take(self, key: str, default: Any, is_valid: Callable[[Any], bool], expected: str) -> Any:
        self._taken.add(key)
        if key not in self._content:
            if default is NEEDED:
                raise SettingsError(f'{self._prefix}{key} is needed; it is missing')
            return default
        value = self._content[key]
        if not is_valid(value):
            raise SettingsError(f'{self._prefix}{key} takes {expected}; got {shown(value)}')
        return value


def shown(value: Any) -> str:
    """Return a value as text for an error message."""
    text = repr(value)
    return text if len(text) <= 200 else f'{text[:200]}...'


def _is_text(value: Any) -> bool:
    # A text that cannot be printed cannot be a name, nor be sent in a message.
    return isinstance(value, str) and value.isprintable()


def _is_topic(value: Any) -> bool:
    if not _is_text(value):
        return False
    name = value.strip()
    return len(name) <= MAX_TOPIC and bool(TOPIC.fullmatch(name)) and '__' not in name


def _are_names(value: Any) -> bool:
    are_names = isinstance(value, list) and all(_is_text(name) and name for name in value)
    return are_names and 0 < len(set(value)) == len(value)


def _are_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(_are_names(pair) and len(pair) == 2 for pair in value)


def _is_number(value: Any) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return -LARGEST <= value <= LARGEST  # a whole number may exceed all floats


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _is_vector3(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
