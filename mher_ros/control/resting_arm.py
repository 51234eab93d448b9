"""Whether an arm without commands stands still, and where."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

STILL = 0.006  # largest difference between the positions of a joint that stands still [rad or m]
STILL_FOR = 0.25  # time over which it must do so [s]
READINGS = 5  # least number of joint states in that time
NEAR, SAGGING = (0.03, 0.02), (0.1, 0.05)
"""
Distance of a joint [rad or m] and of the tool [m] from the set-point of an arm that holds it.

The latter if it has not moved since it came to rest.
"""
SETTLING = 0.3  # time in which an arm that may no longer move must come to rest for that [s]
MOVED = 0.01  # displacement of a joint by which an arm at rest was moved by others [rad or m]


class RestingArm:
    """
    The joint states of the last quarter second, and where the arm came to rest.

    One wrong reading, or an arm that still moves, must not become the start of a motion.
    """

    def __init__(self, still_for: float = STILL_FOR) -> None:
        """``still_for`` [s]: 0 if one joint state is enough."""
        self._still_for, self._least = still_for, READINGS if still_for else 1
        self._readings: deque[tuple[float, Vector]] = deque()
        self._stamp = 0
        self._rested: Vector | None = None  # where the arm came to rest after the last command

    def clear(self) -> None:
        """Forget all joint states."""
        self._readings.clear()

    def take(self, now: float, stamp: int, positions: Vector) -> None:
        """Take joint positions (n,), received at ``now`` [s] with this stamp [ns]."""
        readings = self._readings
        if stamp == self._stamp != 0 and readings and np.array_equal(positions, readings[-1][1]):
            return  # the same state again is no further reading
        self._stamp = stamp
        readings.append((now, positions))
        while len(readings) > self._least and readings[1][0] <= now - self._still_for:
            readings.popleft()

    def spread(self) -> float | None:
        """Return the largest difference of a joint [rad or m]; None: it is not known yet."""
        readings = self._readings
        if len(readings) < self._least or readings[-1][0] - readings[0][0] < self._still_for:
            return None
        return float(np.ptp([positions for _, positions in readings], axis=0).max())

    def position(self) -> Vector:
        """Return the joint positions (n,) of the state that differs least from the others."""
        positions = np.array([one for _, one in self._readings])
        off = np.abs(positions - np.median(positions, axis=0)).max(axis=1)
        return np.asarray(positions[off.argmin()])

    def watch(self, now: float, until: float) -> None:
        """Notice where the arm comes to rest; until then [s] it may move to its set-point."""
        if now <= until:
            self._rested = None
        elif self._rested is None and now <= until + SETTLING:
            spread = self.spread()
            if spread is not None and spread <= STILL:
                self._rested = self.position()

    def holds(self, positions: Vector, joint: float, tool: float, is_recent: bool) -> bool:
        """
        Return whether an arm at joint positions (n,) still holds its last set-point.

        ``joint``, ``tool``: its distances from it [rad or m, m]. ``is_recent``: it may still move.
        """
        near = NEAR
        if not is_recent and self._rested is not None:
            if np.abs(positions - self._rested).max() > MOVED:
                return False
            near = SAGGING
        return joint <= near[0] and tool <= near[1]
