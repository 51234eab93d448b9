"""Drives of joints: position control, velocity control, and trajectories."""

from mher_ros.interface import Vector
import numpy as np
from numpy.typing import ArrayLike

POSITION_GAIN = 10.0  # velocity per rad of error [1/s]
ACCELERATION = (
    6.0  # limit of a drive [rad/s^2]; more than that of commands, so that it follows them
)
BRAKING = 0.8  # share of the acceleration that is planned for braking


class Drives:
    r"""
    The position loop of each joint's drive.

    It sets the velocity

    .. math:: v = \min(v_{max},\; K |e|,\; \sqrt{2 b\,a\,|e|})\,\operatorname{sgn}(e)

    which changes by at most :math:`a\,dt`.
    """

    def __init__(self, speeds: Vector, timestep: float) -> None:
        """``speeds``: velocity limits (k,) [rad/s]; ``timestep``: time between two steps [s]."""
        self._speeds = speeds
        self._most = ACCELERATION * timestep
        self._asked = np.zeros_like(speeds)
        self.position_gains: Vector = np.full_like(speeds, POSITION_GAIN)
        """Velocity per rad of error (k,) [1/s]."""

    def reset(self) -> None:
        self._asked[:] = 0.0

    def step(self, error: Vector) -> Vector:
        """Return the velocities (k,) [rad/s] for position errors (k,) [rad]."""
        distance = np.abs(error)
        speed = np.minimum(self.position_gains * distance, self._speeds)
        speed = np.minimum(speed, np.sqrt(2.0 * BRAKING * ACCELERATION * distance))
        return self.track(np.copysign(speed, error))

    def track(self, velocities: Vector) -> Vector:
        """Return the velocities (k,) [rad/s], one step towards those given."""
        wanted = np.clip(velocities, -self._speeds, self._speeds)
        self._asked += np.clip(wanted - self._asked, -self._most, self._most)
        return self._asked


class Trajectory:
    """Linear interpolation from the position of the arm through points, each at its time."""

    def __init__(self, start: ArrayLike, times: ArrayLike, points: ArrayLike) -> None:
        """``start``: position at time 0 (k,); ascending ``times`` (p,) [s]; ``points`` (p, k)."""
        self._times = np.concatenate(((0.0,), np.asarray(times, np.float64)))
        self._points = np.vstack((np.asarray(start, np.float64)[None], points))
        self._now = 0.0

    def is_over(self) -> bool:
        """Return whether the last point has been returned."""
        return self._now > self._times[-1]

    def advance(self, period: float) -> Vector:
        """Return the set-point (k,) at the end of the next period [s]."""
        self._now += period
        # Of several points at the same time the last one counts.
        return np.array([np.interp(self._now, self._times, joint) for joint in self._points.T])
