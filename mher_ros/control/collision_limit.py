"""Keeps the parts of an arm away from each other and from obstacles."""

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import CollisionModel, PairDistances
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int_]

AHEAD = 0.3  # time of motion within which pairs are near if they can come too close [s]
FARTHEST = 0.5  # distance up to which distances are computed [m]
ROUNDING = 1e-9  # of a distance [m]


class CollisionLimit:
    r"""
    Limits of joint velocities, and a check of whole motions.

    ``prepare`` computes the distances of pairs that may come too close. ``rows`` are linear
    limits for the QP: of a pair with the distance :math:`d` and the clearance :math:`c`, the
    parts approach each other by at most :math:`d - c` until they stop,

    .. math:: -\nabla d \cdot \dot q \; (dt + T / 2) \le d - c

    for a motion of one command period :math:`dt` after which the joints brake in the time
    :math:`T`. ``is_clear`` decides. It is exact up to the curvature of the motion, for which it
    assumes the worst: along a straight line in joint space, a point at the distance :math:`R_i`
    from joint :math:`i` leaves its chord by at most :math:`\sum R_i |\Delta q_i| (|\Delta q_i| +
    2 \sum_{j < i} |\Delta q_j|) / 8`. If two parallel planes separate two convex parts at both
    ends, they separate the straight motion between them, and their distance minus that error
    bounds the distance of the parts in between.

    Parts that are already too close may only move apart.
    """

    def __init__(self, arm: ArmModel, collision: CollisionModel, period: float) -> None:
        """``period``: time between two commands [s]."""
        self._order, self._period = arm.order, period
        self._dofs = np.argsort(arm.order)[: len(arm.joint_names)]
        self._model, self._clearances = collision, collision.clearances
        self._reach, self._between = collision.reach, collision.between
        self._moved = np.ascontiguousarray(collision.reach[:, self._dofs])
        self._here, self._there = PairDistances(collision), PairDistances(collision)
        count, joints = self._reach.shape
        # Lower bounds of all distances at the last posture: they save most computations.
        self._least, self._posture = np.full(count, -np.inf), np.zeros(joints)
        self._needed = self._clearances
        self._normals, self._gradients = np.zeros((count, 3)), np.zeros((count, joints))
        self._is_near = np.zeros(count, bool)

    def prepare(
        self, positions: Vector, speeds: Vector, room: tuple[Vector, Vector] | None = None
    ) -> None:
        """
        Compute the distances of pairs that may come too close.

        ``positions`` (n,): of ``state_names``; ``speeds`` (k,): largest ones of the next motion
        [rad/s or m/s]. ``room``: possible displacements, down and up, of the commanded joints by
        earlier commands that are still to be carried out (k,).
        """
        posture = positions[self._order]
        self._least = self._least - self._reach @ np.abs(posture - self._posture)
        self._posture = posture
        farther = speeds * AHEAD
        if room is not None:
            farther = farther + np.maximum(-room[0], room[1])
        self._is_near = self._least < self._clearances + self._moved @ farther
        self._here.move(posture)
        self._needed = self._clearances
        self._compute(np.flatnonzero(self._is_near))
        if room is not None and self._is_near.any():
            # The distances that the arm may have lost when it has carried out these commands.
            rows = self._gradients[:, self._dofs]
            lost = np.maximum(-rows * room[0], -rows * room[1]).clip(0.0).sum(axis=1)
            self._needed = self._clearances + np.where(self._is_near, lost, 0.0)

    def rows(self, velocities: Vector, speeds: Vector, time: float) -> tuple[Vector, Vector]:
        r"""
        Return ``rows`` (m, k) and ``bounds`` (m,) with :math:`r_i \dot q \le b_i`.

        Only those that velocities up to ``speeds`` (k,) can exceed. ``velocities`` (k,): the
        present ones; ``time``: that in which the joints brake after the next command [s].
        """
        near = np.flatnonzero(self._is_near)
        if not near.size:
            return np.empty((0, len(self._dofs))), np.empty(0)
        seconds = self._period + 0.5 * time
        rows = -self._gradients[near][:, self._dofs]
        curved = self._curved(near, velocities * seconds)
        room = self._least[near] - self._needed[near] - curved
        bounds = np.maximum(room, 0.0) / seconds
        matter = np.abs(rows) @ speeds > bounds
        return rows[matter], bounds[matter]

    def is_clear(self, displacements: Vector) -> bool:
        """Return whether the joints can move by these displacements (k,) in proportion."""
        moved = np.abs(displacements)
        near = np.flatnonzero(self._least - self._moved @ moved < self._needed)
        if not near.size:
            return True
        unknown = near[~self._is_near[near]]
        if unknown.size:
            self._is_near[unknown] = True
            self._compute(unknown)
        end = self._posture.copy()
        end[self._dofs] += displacements
        here, there = self._here, self._there
        there.move(end)
        start, normals = self._least[near], self._normals[near]
        least = np.minimum(self._needed[near], start) - ROUNDING
        curved = self._curved(near, displacements)
        # Seen from the first part of a pair, only the joints between them move the last one.
        turned = _turned(normals, here.turns(near), there.turns(near))
        gaps, _ = there.gaps(near, turned)
        left = _smallest(start, gaps, curved) < least
        if not left.any():
            return True
        near, curved, least = near[left], curved[left], least[left]
        end_gaps, end_normals = there.nearest(near)
        turned = _turned(end_normals, there.turns(near), here.turns(near))
        start_gaps, _ = here.gaps(near, turned)
        return bool((_smallest(start_gaps, end_gaps, curved) >= least).all())

    @property
    def nearest(self) -> tuple[float, tuple[str, str]] | None:
        """Distance [m] and names of the pair that is nearest to its clearance; None: not near."""
        near = np.flatnonzero(self._is_near)
        if not near.size:
            return None
        pair = int(near[np.argmin(self._least[near] - self._needed[near])])
        return float(self._least[pair]), self._model.names(pair)

    def _compute(self, pairs: Indices) -> None:
        """Compute distances, normals and gradients of pairs at the posture of ``prepare``."""
        if not pairs.size:
            return
        distances, normals, points = self._here.evaluate(pairs, FARTHEST)
        self._least = self._least.copy()
        self._least[pairs], self._normals[pairs] = distances, normals
        data = self._here.data
        axes, anchors = data.xaxis, data.xanchor
        # n (a x (p - o)) for a joint with the axis a through o.
        rates = _cross(points, normals) @ axes.T + normals @ _cross(anchors, axes).T
        if self._model.slides.any():
            rates = np.where(self._model.slides, normals @ axes.T, rates)
        self._gradients[pairs] = self._between[pairs] * rates

    def _curved(self, pairs: Indices, displacements: Vector) -> Vector:
        """Return by how much a motion may leave its chord (p,) [m]."""
        moved = np.zeros(self._between.shape[1])
        moved[self._dofs] = np.abs(displacements)
        each = self._between[pairs] * moved
        before = np.cumsum(each, axis=1) - each
        return np.asarray((self._reach[pairs] * each * (each + 2.0 * before)).sum(axis=1) / 8.0)


def _cross(one: Vector, other: Vector) -> Vector:
    """Return the cross products of rows (p, 3); several times faster than numpy's."""
    (a, b, c), (x, y, z) = one.T, other.T
    return np.stack((b * z - c * y, c * x - a * z, a * y - b * x), axis=1)


def _turned(normals: Vector, here: Vector, there: Vector) -> Vector:
    """Return normals (p, 3) that turn with bodies from rotations to others (p, 3, 3)."""
    return np.asarray((there @ (here.transpose(0, 2, 1) @ normals[:, :, None]))[:, :, 0])


def _smallest(start: Vector, end: Vector, curved: Vector) -> Vector:
    """Return lower bounds of distances (p,) that are a line from start to end, minus a bow."""
    slope = end - start - 4.0 * curved
    with np.errstate(divide='ignore', invalid='ignore'):
        turning = start - slope * slope / (16.0 * curved)
    inside = (slope < 0.0) & (slope > -8.0 * curved)
    return np.where(inside, turning, np.minimum(start, end))
