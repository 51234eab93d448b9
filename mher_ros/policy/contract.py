"""What a policy file promises about itself, as JSON in its metadata."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import ACTION_MEANINGS, Field, TaskInterface
import numpy as np

__all__ = ['Contract', 'CONTRACT_KEY', 'FORMAT_VERSION', 'PolicyFileError']

CONTRACT_KEY = 'mher_ros.contract'
"""Name of the ONNX metadata entry that holds the contract."""
FORMAT_VERSION = 1
MOST_CHARACTERS = 2**20
DEEPEST = 20
"""Levels of objects and lists."""
LARGEST = 1e9
"""Of all numbers that the interface holds."""


class PolicyFileError(MherError, ValueError):
    """A policy file that cannot be used or made; the message says what was expected and found."""


@dataclasses.dataclass(frozen=True)
class Contract:
    """
    What must hold between a policy and the arm it runs on, and where the policy comes from.

    It is checked where it enters and leaves a file, by ``from_json`` and ``to_json``.
    """

    interface: TaskInterface
    """Fields, units, action scale and meaning, control period, workspace, threshold."""
    training: dict[str, Any]
    """Algorithm, preset, seed, steps, configuration...: what would train it again."""
    evaluation: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Success rate, final errors, number of goals...; empty if it was not evaluated."""
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Return the contract as JSON; PolicyFileError names the entry that is wrong."""
        try:
            text = json.dumps(dataclasses.asdict(self), default=_numpy_scalar)
        except (TypeError, ValueError) as error:
            raise PolicyFileError(f'contract: expected plain JSON values; {error}') from None
        Contract.from_json(text)
        return text

    @classmethod
    def from_json(cls, text: str) -> Contract:
        """Rebuild from ``to_json``; PolicyFileError names the entry that is wrong."""
        if len(text) > MOST_CHARACTERS:
            raise PolicyFileError(f'contract: expected at most {MOST_CHARACTERS} characters')
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PolicyFileError(f'contract: expected JSON; {error}') from None
        if not isinstance(values, dict):
            raise _unexpected('contract', 'an object', values)
        _check_version(values)
        _check_keys('contract', values, cls)
        _check_finite('contract', values)
        for key in ('training', 'evaluation'):
            if not isinstance(values[key], dict):
                raise _unexpected(key, 'an object', values[key])
        rate = values['evaluation'].get('success_rate')
        if rate is not None and not 0.0 <= _number('evaluation.success_rate', rate) <= 1.0:
            raise _unexpected('evaluation.success_rate', 'a number from 0 to 1', rate)
        return cls(**{**values, 'interface': _interface(values['interface'])})


def _check_version(values: dict[str, Any]) -> None:
    # Before all else: the other entries of a future version may be anything.
    version = values.get('format_version')
    if type(version) is not int or version != FORMAT_VERSION:
        came = f'format version {version!r}' if 'format_version' in values else 'none'
        raise PolicyFileError(
            f'contract: this mher_ros reads format version {FORMAT_VERSION}, the file has {came}'
        )


def _interface(values: Any) -> TaskInterface:
    _check_keys('interface', values, TaskInterface)
    for key in ('task', 'action_meaning', 'frame'):
        _check_text(f'interface.{key}', values[key])
    if values['action_meaning'] not in ACTION_MEANINGS:
        known = f'one of {", ".join(ACTION_MEANINGS)}'
        raise _unexpected('interface.action_meaning', known, values['action_meaning'])
    fields = {key: _fields(key, values[key]) for key in ('observation', 'goal', 'action')}
    n, m = len(fields['observation']), len(fields['goal'])

    low, high = (_numbers(f'interface.{key}', values[key], m) for key in ('goal_low', 'goal_high'))
    for entry, (least, most) in enumerate(zip(low, high, strict=True)):
        if least >= most:
            raise _unexpected(f'interface.goal_high[{entry}]', f'more than {least}', most)
    positive = {
        key: _positive(f'interface.{key}', values[key])
        for key in ('control_period', 'success_threshold')
    }
    steps = values['episode_steps']
    if type(steps) is not int or not 1 <= steps <= LARGEST:
        raise _unexpected('interface.episode_steps', 'a whole number above 0', steps)
    indices = {
        key: _run(f'interface.{key}', values[key], m, n)
        for key in ('achieved_index', 'goal_index')
    }
    if not indices['achieved_index']:
        raise _unexpected('interface.achieved_index', f'{m} entries', [])
    ranges = {'goal_low': low, 'goal_high': high}
    return TaskInterface(**{**values, **fields, **ranges, **positive, **indices})


def _fields(key: str, values: Any) -> tuple[Field, ...]:
    where = f'interface.{key}'
    if not isinstance(values, list) or not values:
        raise _unexpected(where, 'a list of fields', values)
    fields = []
    for entry, field in enumerate(values):
        _check_keys(f'{where}[{entry}]', field, Field)
        for text in ('name', 'unit'):
            _check_text(f'{where}[{entry}].{text}', field[text])
        numbers = {
            number: _number(f'{where}[{entry}].{number}', field[number])
            for number in ('nominal', 'scale')
        }
        fields.append(Field(**{**field, **numbers}))
    names = [field.name for field in fields]
    if len(set(names)) < len(names):
        raise _unexpected(where, 'names that differ from each other', names)
    return tuple(fields)


def _run(where: str, values: Any, count: int, size: int) -> tuple[int, ...]:
    """Return ``count`` successive entries of a vector of length ``size``, or none."""
    if values == []:
        return ()
    if isinstance(values, list) and all(type(value) is int for value in values):
        first = values[0]
        if values == list(range(first, first + count)) and 0 <= first <= size - count:
            return tuple(values)
    expected = f'{count} successive entries of an observation of {size}'
    raise _unexpected(where, expected, values)


def _numbers(where: str, values: Any, count: int) -> tuple[float, ...]:
    if not isinstance(values, list) or len(values) != count:
        raise _unexpected(where, f'{count} numbers, one for each entry of the goal', values)
    return tuple(_number(f'{where}[{entry}]', value) for entry, value in enumerate(values))


def _positive(where: str, value: Any) -> float:
    number = _number(where, value)
    if number < 1.0 / LARGEST:
        raise _unexpected(where, 'a number above 0', value)
    return number


def _number(where: str, value: Any) -> float:
    if type(value) not in (int, float):
        raise _unexpected(where, 'a number', value)
    if not -LARGEST <= value <= LARGEST:
        raise _unexpected(where, f'a number of at most {LARGEST:g}', value)
    return float(value)


def _check_text(where: str, value: Any) -> None:
    # What cannot be printed cannot be sent in a message.
    if not isinstance(value, str) or not value or not value.isprintable():
        raise _unexpected(where, 'a text', value)


def _check_keys(where: str, values: Any, kind: type[Any]) -> None:
    if not isinstance(values, dict):
        raise _unexpected(where, 'an object', values)
    expected = {field.name for field in dataclasses.fields(kind)}
    missing, unknown = sorted(expected - values.keys()), sorted(values.keys() - expected)
    if missing:
        raise PolicyFileError(f'{where}: lacks {", ".join(missing)}')
    if unknown:
        named = _printable(', '.join(unknown))
        raise PolicyFileError(
            f'{where}: unknown {named}; the keys are {", ".join(sorted(expected))}'
        )


def _check_finite(where: str, value: Any, depth: int = 0) -> None:
    """Refuse NaN and infinity, which Python's JSON lets through, wherever they are."""
    if depth > DEEPEST:
        raise PolicyFileError(f'contract: expected at most {DEEPEST} levels, got more')
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_finite(key if where == 'contract' else f'{where}.{key}', inner, depth + 1)
    elif isinstance(value, list):
        for entry, inner in enumerate(value):
            _check_finite(f'{where}[{entry}]', inner, depth + 1)
    elif isinstance(value, int | float):
        try:
            finite = math.isfinite(value)
        except OverflowError:  # a whole number beyond the largest float
            finite = False
        if not finite:
            raise _unexpected(where, 'a finite number', value)


def _unexpected(where: str, expected: str, value: Any) -> PolicyFileError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + '...'
    return PolicyFileError(f'{_printable(where)}: expected {expected}, got {shown}')


def _printable(keys: str) -> str:
    """Return keys of a file, which may be any text, for a sentence."""
    return (keys if keys.isprintable() else ascii(keys))[:200]


def _numpy_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f'got {type(value).__name__} {value!r}')
