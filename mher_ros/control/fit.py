"""Checks whether a policy can move an arm's tool."""

from mher_ros.errors import MherError
from mher_ros.interface import Field, TaskInterface
import numpy as np

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
"""Fields that an arm may lack: the observation has the contract's nominal value instead."""
PERIODS = (0.005, 1.0)  # shortest and longest control period that is accepted [s]


class FitError(MherError, ValueError):
    """A policy does not fit an arm; the text says what was expected and what was found."""


def check_fit(interface: TaskInterface) -> None:
    """Raise FitError unless a policy with this interface can move a tool to positions."""

    def require(holds: bool, expected: str, got: object) -> None:
        if not holds:
            raise _unfit(interface, expected, got)

    meaning, period, action = interface.action_meaning, interface.control_period, interface.action
    require(meaning in MEANINGS, f'actions that mean {" or ".join(MEANINGS)}', meaning)
    goal = [(field.name, field.unit) for field in interface.goal]
    is_position = goal == [(name, 'm') for name in POSITION]
    require(is_position, f'a goal of {", ".join(POSITION)} in m', _text(interface.goal))
    known = (*POSITION, *VELOCITY, *ABSENT_POSITION, *ABSENT_VELOCITY)
    for field in interface.observation:
        name = field.name
        require(bool(np.isfinite(field.nominal)), f'a finite nominal {name}', field.nominal)
        require(name in known, f'an observation of any of {", ".join(known)}', name)
        if name in (*VELOCITY, *ABSENT_VELOCITY):
            velocity_unit(field, interface)
        else:
            require(field.unit == 'm', f'{name} in m', field.unit)
    names = tuple(field.name for field in interface.observation)
    is_once = len(set(names)) == len(names)
    require(is_once, 'each field of the observation once', ', '.join(names))
    achieved = tuple(names[index] for index in interface.achieved_index)
    require(
        achieved == POSITION, f'{", ".join(POSITION)} as what is achieved', ', '.join(achieved)
    )
    index = interface.goal_index
    require(not index, 'an observation without the goal', index)
    for name, field in zip(TARGET, action, strict=False):
        require(
            (field.name, field.unit) == (name, 'm') and 0.0 < field.scale < np.inf,
            f'{name} in m with a scale above 0',
            f'{field.name} in {field.unit} with a scale of {field.scale}',
        )
    require(len(action) >= len(TARGET), f'an action of {", ".join(TARGET)}', _text(action))
    for field in action[len(TARGET) :]:
        require(
            field.scale == 0.0,
            f'an action that moves the tool only, after {TARGET[-1]} a scale of 0',
            f'{field.name} with a scale of {field.scale}',
        )
    low, high = PERIODS
    require(low <= period <= high, f'a control period of {low} to {high} s', f'{period} s')


def velocity_unit(field: Field, interface: TaskInterface) -> float:
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
        f'a policy for {interface.task} cannot command a tool: expected {expected}, got {got}'
    )
