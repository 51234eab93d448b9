"""An arm that cannot wait, paced by its own clock."""

from __future__ import annotations

import time
from typing import Any

from mher_ros.ros.arm_link import ArmLink, JointVectors
import numpy as np
from numpy.typing import NDArray

__all__ = ['PacedLink']

LEFT = 3.0
"""Control periods without a step after which the arm is asked to stand still."""


class PacedLink(ArmLink):
    """
    An arm that cannot wait.

    A period is over with the state whose stamp is nearest to one period after the last one that
    was used, so it makes no difference how often the arm tells its state. States less than
    ``EARLY`` or more than ``LATE`` periods apart, or a command given after the next state had
    come, are no step of the task: the episode is lost.
    """

    stepping = 'realtime'
    EARLY, LATE = 0.75, 1.5

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._sent: float | None = None
        self._told = 0
        self._node.create_timer(self._task.interface.control_period, self._stop_if_left)

    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command and return the state about one control period later."""

        def accept(came: int) -> bool:
            passed, gap = (came - self._stamp) / self._period, (came - self._told) / self._period
            self._told = came
            if not 0.0 <= passed <= self.LATE:
                raise self._lost(
                    f'the next state came {passed:.2f} control periods after the last; '
                    f'{self.EARLY} to {self.LATE} were expected'
                )
            # The next state is expected as long after this one as this one after the last.
            return passed >= max(self.EARLY, 1.0 - 0.5 * gap)

        self._skim()
        self._sent = time.monotonic()
        self._send(command)
        return self._await(accept)

    def close(self) -> None:
        """Ask the arm to stand still."""
        self._sent = None
        self._send(self._nothing)

    def _send(self, command: NDArray[np.float64]) -> None:
        self._output.send(self._node.get_clock().now().nanoseconds, command)

    def _stop_if_left(self) -> None:
        """Stop the arm once when no step follows the last: it must not go on meanwhile."""
        sent, patience = self._sent, LEFT * self._task.interface.control_period
        if sent is not None and time.monotonic() - sent > patience:
            self.close()

    def _meet(self) -> None:
        """Do nothing: stamps of an arm with a clock of its own may be any."""

    def _is_first(self, came: int, stamp: int) -> bool:
        return came >= stamp

    def _ask_for_state(self) -> None:
        """Do nothing: the next state comes by itself."""

    def _skim(self) -> None:
        """Take what has come since the last state; the next step's state must not be among it."""
        raw = self._inbox.take(0.0)
        state = None if raw is None else self._read(raw)
        if state is None:
            return
        came, _ = state
        self._told = came
        if (came - self._stamp) / self._period >= self.EARLY:
            raise self._lost('a command came too late: the arm had told its next state')
