"""Keeps the tool in its box while joints move it: they do not brake it along a straight line."""

from mher_ros.control.filter.motion_limiter import MotionLimiter
from mher_ros.control.motion import length
from mher_ros.robots.arm_model import ArmModel
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

BEND = 4.0  # assumed curvature of a braking motion near a face of the box [1/m]
AWAY = 0.1  # share of its speed with which the tool leaves a face that is too close
INSET = 0.005  # distance of a braking motion from the box, as a share of its length
CUBIC = 0.0081  # error of a parabola through three points, over the third power of the turn
ON_A_FACE = 1e-9  # rounding error of a distance from the box [m]


class BoxLimit:
    """Limits of tool velocities near the faces of the box, and a check of braking motions."""

    def __init__(self, arm: ArmModel, limiter: MotionLimiter, braking: float) -> None:
        """``limiter`` has the box; ``braking``: deceleration of the tool that is planned with."""
        self._limiter, self._braking = limiter, braking
        # No joint moves the tool on a radius larger than the length of the arm.
        model = arm.model
        offsets = (*model.body_pos[2:], model.site_pos[0])
        self._cubic = CUBIC * sum(length(offset) for offset in offsets)

    def off_faces(self, wanted: Vector, tool: Vector, velocity: Vector) -> Vector:
        """
        Return a tool velocity (3,) that keeps a distance from the faces of the box.

        ``wanted`` (3,) is asked for at ``tool`` (3,) [m], where the tool has ``velocity`` (3,)
        [m/s]. The distance is that by which a braking motion may bend towards a face: 0 at rest.
        """
        speed = length(velocity)
        stopping = speed * speed / (2.0 * self._braking)
        room = 0.5 * BEND * stopping * stopping
        if room < ON_A_FACE:
            return wanted
        limiter, away = self._limiter, AWAY * speed
        # 1 on a face or outside, 0 if there is enough room.
        low = 1.0 - np.clip((tool - limiter.box_low) / room, 0.0, 1.0)
        high = 1.0 - np.clip((limiter.box_high - tool) / room, 0.0, 1.0)
        least = np.where(low > 0.0, away * low, -np.inf)
        most = np.where(high > 0.0, -away * high, np.inf)
        return wanted if (least > most).any() else np.clip(wanted, least, most)

    def outside(
        self, tool: Vector, start: Vector, middle: Vector, end: Vector, turned: float
    ) -> Vector:
        """
        Return the signed distances by which the tool would leave its box (3,) [m].

        From ``tool`` it moves to ``start``, and brakes through ``middle`` to ``end``, nearly on a
        parabola, while the joints turn by ``turned`` in total [rad]. Outside of the box, it may
        not move farther out.
        """
        limiter = self._limiter
        low = np.minimum(limiter.box_low, tool) - ON_A_FACE
        high = np.maximum(limiter.box_high, tool) + ON_A_FACE
        out = np.minimum(start - low, 0.0) + np.maximum(start - high, 0.0)
        inset = self._cubic * turned**3 + INSET * length(end - start)
        bend = 2.0 * (start + end - 2.0 * middle)
        slope = end - start - bend
        farthest = end
        with np.errstate(divide='ignore', invalid='ignore'):
            turns_at = -0.5 * slope / bend
        turns = (turns_at > 0.0) & (turns_at < 1.0)
        if turns.any():
            farthest = np.where(turns, start + 0.5 * slope * turns_at, end)
        for place in (farthest, end):
            beyond = np.minimum(place - low - inset, 0.0) + np.maximum(place - high + inset, 0.0)
            out = np.where(np.abs(beyond) > np.abs(out), beyond, out)
        return out
