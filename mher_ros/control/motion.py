"""Motions that controllers ask for, and commands to an arm."""

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class ToolVelocity:
    """A motion of the tool that keeps its orientation."""

    value: Vector
    """(3,) [m/s] in the base frame."""


@dataclasses.dataclass(frozen=True)
class JointVelocities:
    """A motion of the commanded joints."""

    values: Vector
    """(k,) [rad/s or m/s]"""


Motion = ToolVelocity | JointVelocities


@dataclasses.dataclass(frozen=True)
class Command:
    """A command to an arm, in its base frame; the output decides which part is sent."""

    tool_position: Vector
    """(3,) [m]"""
    tool_velocity: Vector
    """(3,) [m/s]"""
    orientation: Vector
    """(4,) (w, x, y, z)"""
    joint_positions: Vector | None
    """(k,) [rad or m]"""
    joint_velocities: Vector | None
    """(k,) [rad/s or m/s]"""
    is_stop: bool = False
    """Whether it is the last command of a motion: the arm stays there."""


def length(vector: Vector) -> float:
    """Return the length of a vector (3,); several times faster than numpy's norm."""
    return math.sqrt(vector @ vector)
