"""From actions to commands and back: the one place that knows how an action is carried out."""

from __future__ import annotations

from mher_ros.interface import TaskInterface
import numpy as np
from numpy.typing import NDArray

__all__ = ['CommandEncoding']


class CommandEncoding:
    r"""
    What an action of a task asks of the arm.

    An action :math:`a \in [-1, 1]^k` becomes a velocity of the tool along the axes of the task's
    frame, :math:`v_i = a_i \, scale_i / period` [m/s], or a torque for each joint,
    :math:`\tau_i = a_i \, scale_i` [N m]. The last entries may ask for nothing, by a scale of 0.
    Going there and back gives the same float32 action to the bit.
    """

    def __init__(self, interface: TaskInterface) -> None:
        self.is_twist = interface.action_meaning != 'joint_torque'
        """Whether a command is a velocity of the tool; a torque for each joint otherwise."""
        used = [field for field in interface.action if field.scale != 0.0]
        if tuple(used) != interface.action[: len(used)]:
            raise ValueError(f'{interface.task}: entries that ask for nothing must come last')
        time = interface.control_period if self.is_twist else 1.0
        self._size, self._used = len(interface.action), len(used)
        self._rates = np.array([field.scale / time for field in used])
        self.names = tuple(field.name for field in used)
        """Entries of a command."""

    def command(self, action: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the command (c,) of an action (k,)."""
        return action[: self._used] * self._rates

    def action(self, command: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the action (k,) whose command (c,) this is; beyond [-1, 1] if it is too fast."""
        action = np.zeros(self._size, np.float32)
        action[: self._used] = command / self._rates
        return action
