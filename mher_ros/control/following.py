"""Checks whether an arm that is commanded by velocities follows its commands."""

from __future__ import annotations

import bisect
from collections import deque
import copy

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

WINDOW = 0.3  # time over which displacements are compared [s]
DELAYS = (0.0, 0.05, 0.1, 0.15, 0.2)
"""Possible delays of an arm [s]; the one that explains its motion best counts."""
NOISE, JOINT_NOISE = 0.004, 0.03
"""Differences that are ignored at any speed: of the tool [m], of a joint [rad]."""
MISSING = 0.5  # share of the commanded displacement that may be missing


class Following:
    """
    Compares measured displacements with those commanded up to 0.2 s before.

    Such an arm has no set-point to compare with, and its lag depends on its delay. A blocked arm
    misses the whole displacement for any delay. A blocked joint need not change the motion of the
    tool, so commanded joints are compared, too.
    """

    def __init__(self, joints: int) -> None:
        """``joints``: number of commanded joints; 0: the tool is commanded."""
        self._count = joints
        self._tool, self._joints = _Displacements(3), _Displacements(joints)

    def __copy__(self) -> Following:
        other = object.__new__(Following)
        other.__dict__.update(self.__dict__)
        other._tool, other._joints = copy.copy(self._tool), copy.copy(self._joints)
        return other

    def command(self, tool: Vector, joints: Vector | None) -> None:
        """Add the commanded displacements of tool (3,) [m] and joints (k,)."""
        self._tool.command(tool)
        if joints is not None:
            self._joints.command(joints)

    def error(self, now: float, tool: Vector, joints: Vector) -> tuple[float, float]:
        """
        Return the missing displacement, and how much may be missing [m].

        ``tool`` (3,) [m] and ``joints`` are measured. The result is infinite if a joint does not
        follow.
        """
        moved, commanded = self._tool.compare(now, tool)
        missing = float(np.linalg.norm(moved - commanded, axis=1).min())
        longest = float(np.linalg.norm(commanded, axis=1).max())
        if self._count:
            moved, commanded = self._joints.compare(now, joints[: self._count])
            behind = np.abs(moved - commanded).min(axis=0)
            if (behind > JOINT_NOISE + MISSING * np.abs(commanded).max(axis=0)).any():
                missing = np.inf
        return missing, NOISE + MISSING * longest


class _Displacements:
    """Commanded and measured displacements of the last half second."""

    def __init__(self, size: int) -> None:
        self._history: deque[tuple[float, Vector, Vector]] = deque()
        self._sum = np.zeros(size)

    def command(self, displacement: Vector) -> None:
        self._sum = self._sum + displacement

    def compare(self, now: float, place: Vector) -> tuple[Vector, Vector]:
        """Return the displacement (k,) of the last ``WINDOW``, and those commanded (d, k)."""
        history = self._history
        history.append((now, self._sum, place))
        while len(history) > 1 and history[1][0] <= now - WINDOW - DELAYS[-1]:
            history.popleft()
        sums = [self._at(now - delay)[1] - self._at(now - delay - WINDOW)[1] for delay in DELAYS]
        return place - self._at(now - WINDOW)[2], np.array(sums)

    def _at(self, time: float) -> tuple[float, Vector, Vector]:
        """Return the last entry until ``time``, or the first."""
        index = bisect.bisect_right(self._history, time, key=lambda entry: entry[0])
        return self._history[max(0, index - 1)]
