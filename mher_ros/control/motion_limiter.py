"""The last word on a tool's velocity: slow enough, smooth enough, and inside a box."""

from __future__ import annotations

import dataclasses
import math

from mher_ros.control.box import read_box
from mher_ros.options import check, option
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['MotionLimiter', 'MotionLimits']

ROUNDING = 1.0 - 1e-9
"""Limits are undercut by this much, so that not even the last bit of a result exceeds them."""


@dataclasses.dataclass(frozen=True)
class MotionLimits:
    """How a tool may move."""

    speed: float = option(0.25, 'fastest motion of the tool [m/s]', low=0.001, high=2.0)
    acceleration: float = option(
        1.0, 'fastest change of its velocity [m/s^2]', low=0.01, high=20.0
    )
    longest_tick: float = option(
        0.1,
        'time for which the arm may have to go on with one command [s]: the tool keeps enough '
        'distance from the box for it, and after a longer one it is taken to have lasted this',
        low=0.001,
        high=0.5,
    )


class MotionLimiter:
    r"""
    Turns the velocity that is wanted into one that is allowed, tick by tick.

    Whatever comes in, a velocity that goes out is finite, no faster than ``speed``, and differs
    from the one before by at most ``acceleration * dt``. Towards a face of the box at a distance
    :math:`d` the tool moves no faster than :math:`v` with :math:`v T + v^2 / 2b \le d`, where
    :math:`T` is ``longest_tick`` and :math:`b` the braking that three axes can have at once: it
    can stop before the face even if the next command is late. Outside the box it may only come
    back. Braking comes first: what it leaves of the acceleration goes to what is wanted.
    """

    def __init__(self, limits: MotionLimits, box_low: ArrayLike, box_high: ArrayLike) -> None:
        check(limits)
        low, high = read_box(box_low, box_high)
        self.box_low, self.box_high = low, high
        """Corners of the box (3,) [m]."""
        self._faces = tuple(zip(low.tolist(), high.tolist(), strict=True))
        self._speed = limits.speed * ROUNDING
        self._acceleration = limits.acceleration * ROUNDING
        self._tick = limits.longest_tick
        self._braking = self._acceleration / math.sqrt(3.0)
        self._clear = self._speed * self._tick + self._speed**2 / (2.0 * self._braking)
        self._last = [0.0, 0.0, 0.0]

    @property
    def velocity(self) -> NDArray[np.float64]:
        """The velocity (3,) that went out last [m/s]."""
        return np.array(self._last)

    def reset(self) -> None:
        """Take the tool to be at rest: before the first command, and after a stop."""
        self._last = [0.0, 0.0, 0.0]

    def next(
        self, position: NDArray[np.floating], wanted: NDArray[np.floating], dt: float
    ) -> NDArray[np.float64]:
        """
        Return the velocity (3,) to command [m/s].

        ``position`` (3,) is the tool's [m], ``wanted`` (3,) its velocity as asked for [m/s] and
        ``dt`` the time since the last call [s]. A position or wish that is not finite brakes the
        tool; a ``dt`` that is not above 0 changes nothing.
        """
        # Plain floats: on three numbers they are several times faster than numpy.
        here, wish = position.tolist(), wanted.tolist()
        (x, y, z), (u, v, w) = here, wish
        if not math.isfinite(x + y + z + u + v + w):
            wish = [0.0, 0.0, 0.0]
        else:
            fast = math.hypot(u, v, w)
            if fast > self._speed:
                slower = self._speed / fast
                wish = [u * slower, v * slower, w * slower]
        change = self._acceleration * min(dt, self._tick) if dt > 0.0 else 0.0
        self._last = self._approach(self._bounds(here), wish, change)
        return np.array(self._last)

    def _bounds(self, here: list[float]) -> list[tuple[float, float]]:
        """Return the least and largest velocity along each axis, from which the tool can brake."""
        clear, bounds = self._clear, []
        for place, (low, high) in zip(here, self._faces, strict=True):
            below, above = place - low, high - place
            bounds.append(
                (
                    -self._speed if below >= clear else -self._slowed(below),
                    self._speed if above >= clear else self._slowed(above),
                )
            )
        return bounds

    def _slowed(self, distance: float) -> float:
        """Return the speed from which the tool stops within ``distance``; 0 outside, or NaN."""
        if not distance > 0.0:
            return 0.0
        tick = self._tick
        return 2.0 * distance / (tick + math.sqrt(tick * tick + 2.0 * distance / self._braking))

    def _approach(
        self, bounds: list[tuple[float, float]], wish: list[float], change: float
    ) -> list[float]:
        """Return what can be reached from the last velocity by a change of this norm [m/s]."""
        braking, rest = [], []
        for last, asked, (least, most) in zip(self._last, wish, bounds, strict=True):
            brake = min(max(last, least), most) - last
            braking.append(brake)
            rest.append(min(max(asked, least), most) - last - brake)
        (a, b, c), (d, e, f) = braking, rest
        squared, room = a * a + b * b + c * c, change * change
        if squared >= room:
            part = change / math.sqrt(squared) if squared > room else 1.0
            return [last + part * brake for last, brake in zip(self._last, braking, strict=True)]
        along, length = a * d + b * e + c * f, d * d + e * e + f * f
        part = 1.0
        if squared + 2.0 * along + length > room:
            # The root of |braking + part * rest| = change; there is one, with length > 0.
            part = (math.sqrt(along * along + length * (room - squared)) - along) / length
        return [
            last + brake + part * more
            for last, brake, more in zip(self._last, braking, rest, strict=True)
        ]
