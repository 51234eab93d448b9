"""Keeps the parts of an arm away from each other and from obstacles."""

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import CollisionModel, PairDistances
from mher_ros.robots.obstacle_slots import ObstacleSlots, SLOTS
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Indices = NDArray[np.int_]

AWAY = 0.02  # most speed with which a pair must part, so that a curved motion is clear [m/s]
AT_LIMIT = 0.01  # distance beyond the clearance at which parts hold each other back [m]
FARTHEST = 0.5  # distance up to which distances are computed [m]
ROUNDING = 1e-9  # of a distance [m]
LATE = 0.1  # largest delay of a command, besides the reaction time of the arm [s]
NO_PAIRS = np.empty(0, np.int_)


class CollisionLimit:
    r"""
    Limits of joint velocities, and a check of whole motions.

    ``prepare`` computes the distances of pairs that may come too close. ``rows`` are linear
    limits for the QP: of a pair with the distance :math:`d` and the clearance :math:`c`, the
    parts approach each other by at most :math:`d - c` until they stop,

    .. math:: -\nabla d \cdot \dot q \; (dt + T / 2) \le d - c

    for a motion of one command period :math:`dt` after which the joints brake in the time
    :math:`T`. ``is_clear`` decides. It is exact up to the curvature of the motion, for which it
    assumes the worst: along a straight line in joint space, a point at a distance of up to
    :math:`R_i` from the axis of joint :math:`i` leaves its chord by at most :math:`\sum R_i
    |\Delta q_i| (|\Delta q_i| + 2 \sum_{j < i} |\Delta q_j|) / 8`. If two parallel planes
    separate two convex parts at both ends, they separate the straight motion between them, and
    their distance minus that error bounds the distance of the parts in between.

    Parts that are already too close may only move apart.
    """

    def __init__(self, arm: ArmModel, collision: CollisionModel, period: float) -> None:
        """``period``: time between two commands [s]."""
        self._order, self._period = arm.order, period
        self._dofs = np.argsort(arm.order)[: len(arm.joint_names)]
        self._model, self._clearances = collision, collision.clearances
        self._between = collision.between.astype(float)  # a product with bool takes longer
        self._here, self._there = PairDistances(collision), PairDistances(collision)
        count, joints = self._between.shape
        self._reach = np.zeros((count, joints))
        # Lower bounds of all distances at the last posture: they save most computations.
        self._least, self._posture = np.full(count, -np.inf), np.zeros(joints)
        self._needed = self._clearances
        # Normals of planes between parts, in the frames of the first ones, and the nearest points
        # of the last ones in theirs.
        self._normals, self._points = np.zeros((count, 3)), np.zeros((count, 3))
        self._gradients = np.zeros((count, joints))
        self._is_near, self._active = np.zeros(count, bool), NO_PAIRS
        self._speeds, self._seconds = np.zeros(len(self._dofs)), period
        self._farthest = FARTHEST

    def prepare(
        self,
        positions: Vector,
        speeds: Vector,
        time: float,
        room: tuple[Vector, Vector] | None = None,
    ) -> None:
        """
        Compute the distances of pairs that may come too close.

        ``positions`` (n,): of ``state_names``; ``speeds`` (k,): largest ones of the next command
        [rad/s or m/s]; ``time``: that in which the joints brake after it [s]. ``room``: possible
        displacements, down and up, of the commanded joints by earlier commands that are still to
        be carried out (k,).
        """
        posture = positions[self._order]
        self._least = self._least - self._travel(np.abs(posture - self._posture))
        self._posture = posture
        self._here.move(posture)
        self._reach = self._here.reach()
        self._take_changes(time)
        self._speeds, self._seconds = speeds, self._period + 0.5 * time
        farther = speeds * self._seconds
        if room is not None:
            farther = farther + np.maximum(-room[0], room[1])
        was_near = self._is_near
        self._is_near = self._least < self._clearances + self._travel(self._all(farther))
        self._needed, self._active = self._clearances, NO_PAIRS
        near = np.flatnonzero(self._is_near)
        if not near.size:
            return
        self._update(near[was_near[near]])
        self._renew(near[~was_near[near]])
        self._take_room(near, room)
        # Planes of the last posture are good enough for pairs that the next command cannot reach.
        self._active = near[self._can_touch(near)]
        self._renew(self._active)
        self._take_room(self._active, room)

    def _take_changes(self, time: float) -> None:
        """Prepare for commands after which the joints brake in ``time`` [s]."""

    def _needed_for(self, time: float) -> Vector:
        """Return the least distances of a motion whose joints brake in ``time`` [s] (pairs,)."""
        return self._needed

    def _can_touch(self, pairs: Indices) -> NDArray[np.bool_]:
        """Return which pairs the next command could bring too close (p,)."""
        rates = np.abs(self._gradients[pairs][:, self._dofs]) @ self._speeds
        return np.asarray(rates * self._seconds > self._least[pairs] - self._needed[pairs])

    def _take_room(self, pairs: Indices, room: tuple[Vector, Vector] | None) -> None:
        """Add the distances that are lost when the arm has carried out earlier commands."""
        if room is None:
            return
        rows = self._gradients[pairs][:, self._dofs]
        lost = np.maximum(-rows * room[0], -rows * room[1]).clip(0.0).sum(axis=1)
        self._needed = self._needed.copy()
        self._needed[pairs] = self._clearances[pairs] + lost

    def rows(self, velocities: Vector) -> tuple[Vector, Vector]:
        r"""
        Return ``rows`` (m, k) and ``bounds`` (m,) with :math:`r_i \dot q \le b_i`.

        Only those that the next command can exceed. ``velocities`` (k,): the present ones.
        """
        near = self._active
        if not near.size:
            return np.empty((0, len(self._dofs))), np.empty(0)
        curved = self._curved(near, velocities * self._seconds)
        room = self._least[near] - self._needed[near] - curved
        bounds = np.maximum(room / self._seconds, -AWAY)
        # A face that turns touches with one of its vertices first.
        normals = self._here.in_base(near, self._normals[near])
        corners = self._rates(near, self._here.lowest(near, normals), normals)
        rows = np.concatenate((self._gradients[near], corners))[:, self._dofs]
        return -rows, np.concatenate((bounds, bounds))

    def is_clear(self, displacements: Vector, time: float) -> bool:
        """
        Return whether the joints can move by these displacements (k,) in proportion.

        ``time``: that in which they brake after the next command, and since ``prepare`` [s].
        """
        travel, needed = self._travel(self._all(np.abs(displacements))), self._needed_for(time)
        near = np.flatnonzero(self._least - travel < needed)
        if not near.size:
            return True
        unknown = near[~self._is_near[near]]
        if unknown.size:
            self._is_near[unknown] = True
            self._renew(unknown)
        end = self._posture.copy()
        end[self._dofs] += displacements
        here, there = self._here, self._there
        there.move(end)
        start = self._least[near]
        least = np.minimum(needed[near], start) - ROUNDING
        curved = self._curved(near, displacements)
        # Seen from the first part of a pair, only the joints between them move the last one.
        gaps = there.gaps(near, there.in_base(near, self._normals[near]))
        left = _smallest(start, gaps, curved) < least
        if not left.any():
            return True
        near, curved, least = near[left], curved[left], least[left]
        normals, _, _ = there.planes(near, self._farthest)
        end_gaps = there.gaps(near, there.in_base(near, normals))
        start_gaps = here.gaps(near, here.in_base(near, normals))
        return bool((_smallest(start_gaps, end_gaps, curved) >= least).all())

    @property
    def active_pairs(self) -> int:
        """Number of pairs that the next command could bring too close."""
        return len(self._active)

    @property
    def obstruction(self) -> str:
        """Which parts hold the arm back, and their distance, for people; empty: none do."""
        near = self._active
        if not near.size:
            return ''
        left = self._least[near] - self._needed[near]
        pair = int(near[np.argmin(left)])
        if left.min() > AT_LIMIT:
            return ''
        one, other = self._model.names(pair)
        return f'{other} is {max(0.0, self._least[pair]):.3f} m from {one}'

    @property
    def nearest(self) -> tuple[float, tuple[str, str, float]] | None:
        """
        The least room to a clearance [m], and the two parts that have it with their distance [m].

        None: there are none that the next commands could bring too close.
        """
        near = np.flatnonzero(self._is_near)
        if not near.size:
            return None
        room = self._least[near] - self._needed[near]
        pair = int(near[np.argmin(room)])
        return float(room.min()), (*self._model.names(pair), float(self._least[pair]))

    def _renew(self, pairs: Indices) -> None:
        """Find the planes between parts at the posture of ``prepare``, and update distances."""
        if pairs.size:
            self._normals[pairs], self._points[pairs], far = self._here.planes(
                pairs, self._farthest
            )
            self._update(pairs)
            self._least[pairs[far]] = self._farthest

    def _update(self, pairs: Indices) -> None:
        """Compute distances and their gradients at the posture of ``prepare``."""
        if not pairs.size:
            return
        here = self._here
        normals = here.in_base(pairs, self._normals[pairs])
        self._least = self._least.copy()
        self._least[pairs] = here.gaps(pairs, normals)
        points = here.points_in_base(pairs, self._points[pairs])
        self._gradients[pairs] = self._rates(pairs, points, normals)

    def _rates(self, pairs: Indices, points: Vector, normals: Vector) -> Vector:
        """Return the motion of points (p, 3) along normals (p, 3) per joint (p, nv)."""
        axes, anchors = self._here.data.xaxis, self._here.data.xanchor
        # n (a x (p - o)) for a joint with the axis a through o.
        rates = _cross(points, normals) @ axes.T + normals @ _cross(anchors, axes).T
        if self._model.slides.any():
            rates = np.where(self._model.slides, normals @ axes.T, rates)
        return np.asarray(self._between[pairs] * rates)

    def _curved(self, pairs: Indices, displacements: Vector) -> Vector:
        """Return by how much a motion may leave its chord (p,) [m]."""
        moved = self._all(np.abs(displacements))
        each = self._between[pairs] * moved
        before = np.cumsum(each, axis=1) - each
        reach = self._reach[pairs]
        reach = reach + ((reach @ moved) * np.exp(each.sum(axis=1)))[:, None]
        return np.asarray((reach * each * (each + 2.0 * before)).sum(axis=1) / 8.0)

    def _travel(self, moved: Vector) -> Vector:
        """
        Return how far parts may move against each other (pairs,) [m].

        ``moved`` (nv,): absolute displacements of joints from the posture of ``prepare``. The
        distance of a point from a joint's axis changes meanwhile, by no more than it travels.
        """
        return np.asarray((self._reach @ moved) * np.exp(self._between @ moved))

    def _all(self, displacements: Vector) -> Vector:
        """Return displacements of all joints (nv,), given those of the commanded ones (k,)."""
        moved = np.zeros(self._between.shape[1])
        moved[self._dofs] = displacements
        return moved


class ObstacleLimit(CollisionLimit):
    r"""
    The same for obstacles that come, move and go.

    An obstacle that moves may have come nearer since its place was known, and may do so until the
    arm rests. Its pairs have the clearance :math:`c + v t`, with its largest speed :math:`v`, and
    the time :math:`t` from then until the arm has carried out the last command of braking.
    """

    now = 0.0
    """Time of the next command [s]."""

    def __init__(self, arm: ArmModel, slots: ObstacleSlots, period: float) -> None:
        super().__init__(arm, slots, period)
        self._slots, self._seen = slots, np.zeros(SLOTS, np.int_)
        self._delay = arm.reaction_time + LATE
        self._braking = 0.0  # time for which distances are prepared [s]

    def _take_changes(self, time: float) -> None:
        slots, self._braking = self._slots, time
        self._clearances = slots.margins(self.now + self._period + time + self._delay)
        self._farthest = FARTHEST + max(0.0, float(self._clearances.max()))
        for slot in np.flatnonzero(self._seen != slots.versions).tolist():
            pairs = slots.pairs_of(slot)
            self._least[pairs] = self._here.least(slots.pairs[pairs])
            self._is_near[pairs] = False
        self._seen = slots.versions.copy()

    def _needed_for(self, time: float) -> Vector:
        return np.asarray(self._needed + self._slots.speeds * (time - self._braking))


def _cross(one: Vector, other: Vector) -> Vector:
    """Return the cross products of rows (p, 3); several times faster than numpy's."""
    (a, b, c), (x, y, z) = one.T, other.T
    product = np.empty((3, len(one)))
    product[0], product[1], product[2] = b * z - c * y, c * x - a * z, a * y - b * x
    return product.T


def _smallest(start: Vector, end: Vector, curved: Vector) -> Vector:
    """Return lower bounds of distances (p,) that are a line from start to end, minus a bow."""
    slope = end - start - 4.0 * curved
    with np.errstate(divide='ignore', invalid='ignore'):
        turning = start - slope * slope / (16.0 * curved)
    inside = (slope < 0.0) & (slope > -8.0 * curved)
    return np.where(inside, turning, np.minimum(start, end))
