"""An arm that does one control period for each command that answers its latest state."""

from __future__ import annotations

from typing import Any

from mher_ros.ros.arm_link import ArmLink, JointVectors
from mher_ros.ros.shared_core import SharedCore
import numpy as np
from numpy.typing import NDArray

__all__ = ['LockstepLink']


class LockstepLink(ArmLink):
    """
    An arm that waits for its commands.

    A command carries the stamp of the state it answers. The arm steps if that is its latest, and
    else tells its latest again; the next state is stamped one period later. What is lost, doubled
    or late so never makes a step more or less. A state of another series of stamps means that the
    arm was restarted: the episode is lost.
    """

    stepping = 'lockstep'

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._core = SharedCore(self._node.context.get_domain_id(), self._inbox.topic)
        self._core.enter()

    def exchange(self, command: NDArray[np.float64]) -> JointVectors:
        """Send a command, again and again if need be, and return the state that answers it."""
        stamp, expected = self._stamp, self._stamp + self._period

        def accept(came: int) -> bool:
            if came > expected or (stamp - came) % self._period:
                raise self._lost(
                    'the arm was restarted, or somebody else resets or commands it: a state '
                    f'stamped {expected} was expected, {came} came ({self._hint()})'
                )
            return came == expected  # an older one is a repetition

        self._output.send(stamp, command)
        return self._await(accept, lambda: self._output.send(stamp, command))

    def close(self) -> None:
        """Leave the arm, which waits."""
        self._core.leave()

    def _meet(self) -> None:
        if not self._alone:
            self._wait_for_service(self._reset)
            self._wait_to_be_alone()

    def _is_first(self, came: int, stamp: int) -> bool:
        return came == stamp

    def _ask_for_state(self) -> None:
        # No state has this stamp, so this is not obeyed but answered with the latest state.
        self._output.send(0, self._nothing)
