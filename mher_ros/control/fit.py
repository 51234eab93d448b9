"""Whether a policy can lead an arm's tool, and what it sees of it."""

from __future__ import annotations

from mher_ros.errors import MherError
from mher_ros.interface import Field, TaskInterface
import numpy as np
from numpy.typing import NDArray

__all__ = ['check_fit', 'FitError', 'Observer']

AXES = 'xyz'
MEANINGS = ('tool_displacement', 'target_displacement')
POSITION, VELOCITY, TARGET = (
    tuple(f'{what}_{axis}' for axis in AXES)
    for what in ('tool_position', 'tool_velocity', 'tool_target')
)
ABSENT_POSITION, ABSENT_VELOCITY = (
    tuple(f'{side}_finger_{what}' for side in ('right', 'left'))
    for what in ('position', 'velocity')
)
"""What an arm need not have: the contract's nominal value stands for it."""
PERIODS = (0.005, 1.0)
"""Shortest and longest control period that is carried out [s]."""


class FitError(MherError, ValueError):
    """A policy that does not fit; the text says what was expected and what its contract says."""


class Observer:
    """What a policy sees of a tool: its fields by name, in its units."""

    def __init__(self, interface: TaskInterface) -> None:
        check_fit(interface)
        fields = interface.observation
        names = [field.name for field in fields]
        self._nominal = np.array([field.nominal for field in fields])
        self._position = np.array([names.index(name) for name in POSITION])
        seen = [name for name in VELOCITY if name in names]
        self._velocity = np.array([names.index(name) for name in seen], np.intp)
        self._axes = np.array([VELOCITY.index(name) for name in seen], np.intp)
        self._factors = np.array([_seconds(fields[index], interface) for index in self._velocity])

    def __call__(
        self, position: NDArray[np.float64], velocity: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """
        Return the observation (n,) of a tool at ``position`` (3,) [m] with ``velocity`` [m/s].

        Both are the policy's own: ``Workspace.to_policy`` and ``velocity_to_policy``.
        """
        observation = self._nominal.copy()
        observation[self._position] = position
        observation[self._velocity] = velocity[self._axes] * self._factors
        return observation


def check_fit(interface: TaskInterface) -> None:
    """Raise FitError unless a policy with this interface can lead a tool in space."""
    if interface.action_meaning not in MEANINGS:
        raise _unfit(
            interface, f'actions that mean {" or ".join(MEANINGS)}', interface.action_meaning
        )
    goal = [(field.name, field.unit) for field in interface.goal]
    if goal != [(name, 'm') for name in POSITION]:
        raise _unfit(interface, f'a goal of {", ".join(POSITION)} in m', _text(interface.goal))
    _check_observation(interface)
    _check_action(interface)
    if not PERIODS[0] <= interface.control_period <= PERIODS[1]:
        raise _unfit(
            interface,
            f'a control period of {PERIODS[0]} to {PERIODS[1]} s',
            f'{interface.control_period} s',
        )


def _check_observation(interface: TaskInterface) -> None:
    fields = interface.observation
    for field in fields:
        if not np.isfinite(field.nominal):
            raise _unfit(interface, f'a finite nominal {field.name}', field.nominal)
        if field.name in (*VELOCITY, *ABSENT_VELOCITY):
            _seconds(field, interface)
        elif field.name not in (*POSITION, *ABSENT_POSITION):
            known = ', '.join((*POSITION, *VELOCITY, *ABSENT_POSITION, *ABSENT_VELOCITY))
            raise _unfit(interface, f'an observation of any of {known}', field.name)
        elif field.unit != 'm':
            raise _unfit(interface, f'{field.name} in m', field.unit)
    names = tuple(field.name for field in fields)
    if len(set(names)) < len(names):
        raise _unfit(interface, 'each field of the observation once', ', '.join(names))
    achieved = tuple(names[index] for index in interface.achieved_index)
    if achieved != POSITION:
        raise _unfit(interface, f'{", ".join(POSITION)} as what is achieved', ', '.join(achieved))
    if interface.goal_index:
        raise _unfit(interface, 'an observation without the goal', f'{interface.goal_index}')


def _check_action(interface: TaskInterface) -> None:
    action = interface.action
    for name, field in zip(TARGET, action, strict=False):
        if (field.name, field.unit) != (name, 'm') or not 0.0 < field.scale < np.inf:
            raise _unfit(
                interface,
                f'{name} in m with a scale above 0',
                f'{field.name} in {field.unit} with a scale of {field.scale}',
            )
    if len(action) < len(TARGET):
        raise _unfit(interface, f'an action of {", ".join(TARGET)}', _text(action))
    for field in action[len(TARGET) :]:
        if field.scale != 0.0:
            raise _unfit(
                interface,
                f'an action that moves the tool only, after {TARGET[-1]} a scale of 0',
                f'{field.name} with a scale of {field.scale}',
            )


def _seconds(field: Field, interface: TaskInterface) -> float:
    """Return the time [s] by which a velocity is multiplied: 1 for m/s, 0.04 for m/s * 0.04 s."""
    if field.unit == 'm/s':
        return 1.0
    period = interface.control_period
    if field.unit == f'm/s * {period:g} s':
        return period
    raise _unfit(interface, f'{field.name} in m/s or m/s * {period:g} s', field.unit)


def _text(fields: tuple[Field, ...]) -> str:
    return ', '.join(f'{field.name} in {field.unit}' for field in fields)


def _unfit(interface: TaskInterface, expected: str, got: object) -> FitError:
    return FitError(
        f'a policy for {interface.task} cannot lead a tool: expected {expected}, got {got}'
    )
