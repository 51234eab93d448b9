"""The contract of a policy file: JSON in its metadata that describes its interface."""

from collections.abc import Collection
import dataclasses
import json
import math
from typing import Any

from mher_ros.errors import MherError
from mher_ros.interface import (
    ACTION_MEANINGS,
    Field,
    ORIENTATION,
    SOURCES,
    TaskInterface,
    TrainedArm,
)
import numpy as np

CONTRACT_KEY = 'mher_ros.contract'  # name of the ONNX metadata entry that holds the contract
FORMAT_VERSION = 4
REWRITE = 'write the file again from its run with `mher export RUN`, or train again'
MOST_CHARACTERS = 2**20
DEEPEST = 20  # levels of objects and lists
LARGEST = 1e9  # of all numbers that the interface holds


class PolicyFileError(MherError, ValueError):
    """A policy file that cannot be used or written; the message says what was expected."""


@dataclasses.dataclass(frozen=True)
class Contract:
    """The interface between a policy and its arm; ``from_json`` and ``to_json`` check it."""

    interface: TaskInterface  # fields, units, scale and meaning, period, workspace, threshold
    training: dict[str, Any]  # algorithm, preset, seed, steps and configuration of its training
    evaluation: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Success rate, final errors, number of goals and so on; empty without an evaluation."""
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
    def from_json(cls, text: str) -> 'Contract':
        """Rebuild from ``to_json``; PolicyFileError names the entry that is wrong."""
        if len(text) > MOST_CHARACTERS:
            raise PolicyFileError(f'contract: expected at most {MOST_CHARACTERS} characters')
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PolicyFileError(f'contract: expected JSON; {error}') from None
        _expect(isinstance(values, dict), 'contract', 'an object', values)
        # First: another version may have other entries.
        version = values.get('format_version')
        if type(version) is not int or version != FORMAT_VERSION:
            older = type(version) is int and 0 < version < FORMAT_VERSION
            raise PolicyFileError(
                f'contract: expected format version {FORMAT_VERSION}, got {version!r}'
                + (f', of an older mher_ros: {REWRITE}' if older else '')
            )
        _check_keys('contract', values, cls)
        _check_finite('contract', values)
        for key in ('training', 'evaluation'):
            _expect(isinstance(values[key], dict), key, 'an object', values[key])
        rate = values['evaluation'].get('success_rate')
        if rate is not None:
            where = 'evaluation.success_rate'
            _expect(0.0 <= _number(where, rate) <= 1.0, where, 'a number from 0 to 1', rate)
        return cls(**{**values, 'interface': _interface(values['interface'])})


def _interface(values: Any) -> TaskInterface:
    _check_keys('interface', values, TaskInterface)
    for key in ('task', 'action_meaning', 'frame'):
        _check_text(f'interface.{key}', values[key])
    _check_choice('interface.action_meaning', values['action_meaning'], ACTION_MEANINGS)
    checked: dict[str, Any] = {
        key: _fields(f'interface.{key}', values[key]) for key in ('observation', 'goal', 'action')
    }
    n, m = len(checked['observation']), len(checked['goal'])
    for key in ('goal_low', 'goal_high'):
        checked[key] = _numbers(f'interface.{key}', values[key], m)
    for entry, (low, high) in enumerate(
        zip(checked['goal_low'], checked['goal_high'], strict=True)
    ):
        _expect(low < high, f'interface.goal_high[{entry}]', f'more than {low}', high)
    for key in ('control_period', 'success_threshold'):
        checked[key] = number = _number(f'interface.{key}', values[key])
        _expect(number >= 1.0 / LARGEST, f'interface.{key}', 'a number above 0', values[key])
    where = 'interface.orientation_threshold'
    checked['orientation_threshold'] = turn = _number(where, values['orientation_threshold'])
    _expect(turn == 0.0 or 1.0 / LARGEST <= turn <= math.pi, where, 'an angle or 0', turn)
    names = tuple(field.name for field in checked['goal'])
    ends = names[-len(ORIENTATION) :] == ORIENTATION and len(names) > len(ORIENTATION)
    _expect(not turn or ends, 'interface.goal', f'a position and {", ".join(ORIENTATION)}', names)
    steps = values['episode_steps']
    is_count = type(steps) is int and 1 <= steps <= LARGEST
    _expect(is_count, 'interface.episode_steps', 'a whole number above 0', steps)
    for key in ('achieved_index', 'goal_index'):
        checked[key] = _run(f'interface.{key}', values[key], m, n)
    _expect(checked['achieved_index'], 'interface.achieved_index', f'{m} entries', [])
    checked['arm'] = None if values['arm'] is None else _arm(values['arm'])
    return TaskInterface(**{**values, **checked})


def _arm(values: Any) -> TrainedArm:
    _check_keys('interface.arm', values, TrainedArm)
    _check_text('interface.arm.robot', values['robot'])
    scene, samples = values['scene'], values['tool_samples']
    _expect(isinstance(scene, str) and len(scene) <= 64, 'interface.arm.scene', 'a digest', scene)
    where, joints = 'interface.arm.joints', values['joints']
    _expect(isinstance(joints, list) and 0 < len(joints) <= 100, where, 'names', joints)
    for entry, joint in enumerate(joints):
        _check_text(f'{where}[{entry}]', joint)
    where = 'interface.arm.tool_samples'
    _expect(isinstance(samples, list) and 0 < len(samples) <= 100, where, 'positions', samples)
    places = tuple(
        _numbers(f'{where}[{entry}]', place, 3, 'x, y and z')
        for entry, place in enumerate(samples)
    )
    return TrainedArm(values['robot'], tuple(joints), places, scene)


def _fields(where: str, values: Any) -> tuple[Field, ...]:
    _expect(isinstance(values, list) and values, where, 'a list of fields', values)
    fields = []
    for entry, field in enumerate(values):
        inner = f'{where}[{entry}]'
        _check_keys(inner, field, Field)
        for key in ('name', 'unit'):
            _check_text(f'{inner}.{key}', field[key])
        numbers = {key: _number(f'{inner}.{key}', field[key]) for key in ('nominal', 'scale')}
        _check_choice(f'{inner}.source', field['source'], SOURCES)
        fields.append(Field(**{**field, **numbers}))
    names = [field.name for field in fields]
    _expect(len(set(names)) == len(names), where, 'names that differ from each other', names)
    return tuple(fields)


def _run(where: str, values: Any, count: int, size: int) -> tuple[int, ...]:
    """Return ``count`` successive entries of a vector of length ``size``, or none."""
    if values == []:
        return ()
    fits = isinstance(values, list) and all(type(value) is int for value in values)
    if fits:
        first = values[0]
        fits = values == list(range(first, first + count)) and 0 <= first <= size - count
    _expect(fits, where, f'{count} successive entries of an observation of {size}', values)
    return tuple(values)


def _numbers(
    where: str, values: Any, count: int, what: str = 'one for each entry of the goal'
) -> tuple[float, ...]:
    fits = isinstance(values, list) and len(values) == count
    _expect(fits, where, f'{count} numbers, {what}', values)
    return tuple(_number(f'{where}[{entry}]', value) for entry, value in enumerate(values))


def _number(where: str, value: Any) -> float:
    _expect(type(value) in (int, float), where, 'a number', value)
    _expect(-LARGEST <= value <= LARGEST, where, f'a number of at most {LARGEST:g}', value)
    return float(value)


def _check_text(where: str, value: Any) -> None:
    # Unprintable characters cannot be sent in a message.
    _expect(isinstance(value, str) and value and value.isprintable(), where, 'a text', value)


def _check_choice(where: str, value: Any, known: Collection[str]) -> None:
    _expect(value in tuple(known), where, f'one of {", ".join(known)}', value)


def _check_keys(where: str, values: Any, kind: type[Any]) -> None:
    _expect(isinstance(values, dict), where, 'an object', values)
    expected = {field.name for field in dataclasses.fields(kind)}
    missing, unknown = sorted(expected - values.keys()), sorted(values.keys() - expected)
    if missing:
        raise PolicyFileError(f'{where}: lacks {", ".join(missing)}')
    if unknown:
        named, known = _printable(', '.join(unknown)), ', '.join(sorted(expected))
        raise PolicyFileError(f'{where}: unknown {named}; the keys are {known}')


def _check_finite(where: str, value: Any, depth: int = 0) -> None:
    """Refuse NaN and infinity, which Python's JSON reader accepts, at any depth."""
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
        except OverflowError:  # an integer above the largest float
            finite = False
        _expect(finite, where, 'a finite number', value)


def _expect(fits: Any, where: str, expected: str, value: Any) -> None:
    if not fits:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else shown[:77] + '...'
        raise PolicyFileError(f'{_printable(where)}: expected {expected}, got {shown}')


def _printable(keys: str) -> str:
    """Return keys of a file, which may be any text, for a message."""
    return (keys if keys.isprintable() else ascii(keys))[:200]


def _numpy_scalar(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f'got {type(value).__name__} {value!r}')
