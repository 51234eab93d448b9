"""Declared options: a frozen dataclass whose fields carry a help text and a range."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import math
from typing import Any, TypeVar

from mher_ros.errors import MherError

__all__ = ['OptionError', 'check', 'describe', 'option', 'override', 'read_changes']

Options = TypeVar('Options')


class OptionError(MherError, ValueError):
    """A key or value that does not fit; the message says what was expected and what came."""


def option(
    default: Any,
    help: str,  # noqa: A002  (the name argparse and rclpy users know)
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[Any, ...] | None = None,
) -> Any:
    """
    Declare one field of an options dataclass.

    ``low`` and ``high`` are inclusive. The default is a value of the field's own type: a
    tuple of numbers, a number, a bool or a string.
    """
    return dataclasses.field(
        default=default,
        metadata={'help': help, 'low': low, 'high': high, 'choices': choices},
    )


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
    """
    Return a copy of ``options`` with ``changes`` (dotted key to value or text) made and checked.

    Text is read as the field's type: ``'4'`` for a float field gives ``4.0``, ``'64,64'`` for a
    tuple of integers gives ``(64, 64)``.
    """
    fields = {field.name: field for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    nested: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for key, value in changes.items():
        head, _, rest = key.partition('.')
        if head not in fields or not _is_key(fields[head], getattr(options, head), rest):
            known = ', '.join(sorted(_keys(options, prefix)))
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


def _keys(options: Any, prefix: str) -> list[str]:
    return [key for key, _, _ in describe(options, prefix)]


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
        at_most = f' and at most {high}' if high is not None else ''
        at_least = f'at least {low}' if low is not None else ''
        bounds = (at_least + at_most) if at_least else at_most.removeprefix(' and ')
        raise OptionError(f'{key} must be {bounds}, got {value}')


def _kind(default: Any) -> str:
    if isinstance(default, tuple):
        return f'numbers separated by commas (such as {",".join(map(str, default))})'
    names = {bool: 'true or false', int: 'a whole number', float: 'a number', str: 'a word'}
    return names[type(default)]
