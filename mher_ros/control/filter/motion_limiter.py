"""Limits the velocity of a tool: speed, acceleration, and room to brake before its box."""

import dataclasses
import math

from mher_ros.options import check, option
from mher_ros.robots.workspace import read_box
import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

ROUNDING = 1.0 - 1e-9
"""Factor of limits, so that rounding errors do not exceed them."""

ABSURD = 1e6  # velocity from which on it is treated as 0 [m/s]


@dataclasses.dataclass(frozen=True)
class MotionLimits:
    """Limits of the motion of a tool."""

    speed: float = option(0.25, 'fastest motion of the tool [m/s]', low=0.001, high=2.0)
    acceleration: float = option(
        1.0, 'fastest change of its velocity [m/s^2]', low=0.01, high=20.0
    )
    longest_tick: float = option(
        0.1,
        'time for which the arm may have to continue with one command [s]: the tool keeps enough '
        'distance from the box for it; after a longer pause the arm is assumed to be at rest',
        low=0.001,
        high=0.5,
    )


class MotionLimiter:
    r"""
    Turns the velocity that is asked for into an allowed one, for each command.

    For any input the velocity that is returned is finite, at most ``speed``, and differs
    from the one before by at most ``acceleration * dt``. Towards a face of the box at a distance
    :math:`d` the tool moves no faster than :math:`v` with :math:`v T + v^2 / 2b \le d`, where
    :math:`T` is ``longest_tick`` and :math:`b` the braking that three axes can have at once: it
    can stop before the face even if the next command is late. Outside the box it may only move
    back. Braking has priority: only the rest of the acceleration is used for what is asked for.
    """

    def __init__(self, limits: MotionLimits, box_low: ArrayLike, box_high: ArrayLike) -> None:
        check(limits)
        low, high = read_box(box_low, box_high)
        self.limits = limits
        self.box_low, self.box_high = low, high
        """Corners of the box (3,) [m]."""
        self._faces = tuple(zip(low.tolist(), high.tolist(), strict=True))
        self._speed = limits.speed * ROUNDING
        self._acceleration = limits.acceleration * ROUNDING
        self._tick = limits.longest_tick
        self._last = [0.0, 0.0, 0.0]
        self.plan_braking(1.0)

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Last velocity that was returned (3,) [m/s]."""
        return np.array(self._last)

    @velocity.setter
    def velocity(self, velocity: NDArray[np.float64]) -> None:
        self._last = velocity.tolist()

    def plan_braking(self, share: float) -> None:
        """Keep room to brake with this share of the acceleration, from 0 to 1."""
        self._braking = share * self._acceleration / math.sqrt(3.0)
        self._clear = self._speed * self._tick + self._speed**2 / (2.0 * self._braking)

    def next(
        self, position: NDArray[np.floating], wanted: NDArray[np.floating], dt: float
    ) -> NDArray[np.float64]:
        """
        Return the velocity (3,) to command [m/s].

        ``position`` (3,) is the tool's [m], ``wanted`` (3,) its velocity as asked for [m/s] and
        ``dt`` the time over which it may change [s]. A position or velocity that is not finite, or
        a velocity of ``ABSURD``, brakes the tool; a ``dt`` that is not above 0 changes nothing.
        """
        # Plain floats: for three numbers they are several times faster than numpy.
        here, target, last = position.tolist(), wanted.tolist(), self._last
        (x, y, z), (u, v, w) = here, target
        fast = math.hypot(u, v, w)
        if not (fast < ABSURD and math.isfinite(x + y + z)):
            target = [0.0, 0.0, 0.0]
        elif fast > self._speed:
            slower = self._speed / fast
            target = [u * slower, v * slower, w * slower]
        braked, asked = [], []
        for place, now, then, (low, high) in zip(here, last, target, self._faces, strict=True):
            least, most = -self._towards(place - low), self._towards(high - place)
            braked.append(least if now < least else most if now > most else now)
            asked.append(least if then < least else most if then > most else then)
        change = self._acceleration * min(dt, self._tick) if dt > 0.0 else 0.0
        self._last = _approach(last, braked, asked, change)
        return np.array(self._last)

    def velocities_at(self, position: Vector) -> tuple[Vector, Vector]:
        """Return the velocity limits (3,) [m/s] with which the tool can stay in the box."""
        least = [-self._towards(distance) for distance in (position - self.box_low).tolist()]
        most = [self._towards(distance) for distance in (self.box_high - position).tolist()]
        return np.array(least), np.array(most)

    def _towards(self, distance: float) -> float:
        """Return the speed limit towards a face at ``distance`` [m]; 0 outside, or for NaN."""
        if distance >= self._clear:
            return self._speed
        if distance > 0.0:
            tick = self._tick
            root = math.sqrt(tick * tick + 2.0 * distance / self._braking)
            return 2.0 * distance / (tick + root)
        return 0.0


def _approach(
    last: list[float], braked: list[float], asked: list[float], change: float
) -> list[float]:
    """
    Return a velocity that differs from ``last`` by a norm of at most ``change``, all (3,).

    It first moves to ``braked``, and from there towards ``asked`` as far as the rest allows.
    """
    if change == 0.0:
        return last  # also if the squares below would underflow
    (x, y, z), (p, q, r), (u, v, w) = last, braked, asked
    a, b, c = p - x, q - y, r - z
    d, e, f = u - p, v - q, w - r
    room, braking = change * change, a * a + b * b + c * c
    if braking > room:
        part = change / math.sqrt(braking)
        return [x + part * a, y + part * b, z + part * c]
    along, length = a * d + b * e + c * f, d * d + e * e + f * f
    if length == 0.0 or braking + 2.0 * along + length <= room:
        return asked
    # The root of |braking + part * rest| = change.
    part = (math.sqrt(along * along + length * (room - braking)) - along) / length
    return [p + part * d, q + part * e, r + part * f]
