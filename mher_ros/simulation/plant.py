"""The base of every simulated arm."""

from __future__ import annotations

import abc
from typing import Any

from mher_ros.simulation.urdf import urdf_of
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['JointDrivenPlant', 'Plant']


class Plant(abc.ABC):
    """A simulated arm, stepped one period at a time and seen through its joints."""

    model: mujoco.MjModel
    data: mujoco.MjData
    """What is shown of the arm."""
    camera: dict[str, Any]
    """Whence to look at it, as fields of MuJoCo's camera."""
    frame: str
    """Frame of the tool, of commands to it, and of everything shown."""
    period: float
    """Simulated time of one ``advance`` [s]."""
    joint_names: tuple[str, ...]
    """Joints whose state is told."""
    command_names: tuple[str, ...]
    """Entries of a command: joints, or axes of the tool."""

    def description(self, name: str) -> str:
        """Return the URDF of the arm, called ``name``."""
        return urdf_of(self.model, name, self.joint_names, self.frame)

    @abc.abstractmethod
    def reset(self, seed: int | None = None) -> None:
        """Put the arm in its initial state, drawn from ``seed`` where there is a choice."""

    @abc.abstractmethod
    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return positions [rad or m] and velocities of ``joint_names`` as new arrays."""

    @abc.abstractmethod
    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return position (3,) [m] and orientation (4,) (w, x, y, z) of the tool in ``frame``."""

    @abc.abstractmethod
    def advance(self, command: NDArray[np.float64] | None) -> None:
        """Move for one period under a command, or stay where it is without one."""


class JointDrivenPlant(Plant):
    """A simulated arm with a drive on each commanded joint."""

    @abc.abstractmethod
    def advance(self, command: NDArray[np.float64] | None) -> None:
        """
        Move for one period towards joint positions (k,) [rad or m], cut to the joints' ranges.

        Without a command the last one stays in force, as a position controller has it.
        """

    @abc.abstractmethod
    def advance_at(self, velocities: NDArray[np.float64]) -> None:
        """Move for one period with joint velocities (k,) [rad/s or m/s], up to the ranges."""

    def checked_positions(self, command: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a command of joint positions; ValueError unless there is one for each joint."""
        checked = np.asarray(command, np.float64)
        if checked.shape != (len(self.command_names),) or not np.isfinite(checked).all():
            raise ValueError(
                f'a command is {len(self.command_names)} finite joint positions '
                f'({", ".join(self.command_names)}), got {command!r}'
            )
        return checked
