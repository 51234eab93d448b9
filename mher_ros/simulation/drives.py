"""Drives that move joints to positions, or with velocities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ['ACCELERATION', 'Drives', 'POSITION_GAIN']

POSITION_GAIN = 10.0
"""Speed asked for per rad of error [1/s]."""
ACCELERATION = 4.0
"""Most that a drive asks for [rad/s^2]; all arms have the force for it."""
BRAKING = 0.8
"""Share of the acceleration that a drive counts on to stop in time."""


class Drives:
    r"""
    The position loop of each joint's drive.

    It asks for a velocity

    .. math:: v = \min(v_{max},\; K |e|,\; \sqrt{2 b\,a\,|e|})\,\operatorname{sgn}(e)

    that changes by at most :math:`a\,dt`.
    """

    def __init__(self, speeds: NDArray[np.float64], timestep: float) -> None:
        """Take the greatest speeds (k,) [rad/s] and the time between two steps [s]."""
        self._speeds = speeds
        self._most = ACCELERATION * timestep
        self._asked = np.zeros_like(speeds)

    def reset(self) -> None:
        """Begin at rest."""
        self._asked[:] = 0.0

    def step(self, error: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the velocities asked for (k,) [rad/s] where ``error`` (k,) [rad] is left."""
        distance = np.abs(error)
        speed = np.minimum(POSITION_GAIN * distance, self._speeds)
        speed = np.minimum(speed, np.sqrt(2.0 * BRAKING * ACCELERATION * distance))
        return self.track(np.copysign(speed, error))

    def track(self, velocities: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the velocities asked for (k,) [rad/s] on the way to those given."""
        wanted = np.clip(velocities, -self._speeds, self._speeds)
        self._asked += np.clip(wanted - self._asked, -self._most, self._most)
        return self._asked
