"""Distances in a simulation, as MuJoCo itself finds them."""

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FARTHEST = 0.3  # distance up to which distances are computed [m]


class Near(NamedTuple):
    """Two geoms that are near to each other."""

    distance: float
    """[m]; negative in contact."""
    gradient: Vector
    """Of the distance by the joints (nv,) [m/rad, or 1]."""


def colliding_pairs(model: mujoco.MjModel) -> NDArray[np.int_]:
    """
    Return the pairs of geoms (p, 2) that a joint can move into contact with each other.

    These are the pairs that MuJoCo's own collision detection does not filter out.
    """
    weld = model.body_weldid[model.geom_bodyid]
    parent = model.body_weldid[model.body_parentid[weld]]
    types, kinds = model.geom_contype, model.geom_conaffinity
    first, last = np.triu_indices(model.ngeom, 1)
    may = ((types[first] & kinds[last]) | (types[last] & kinds[first])) != 0
    may &= weld[first] != weld[last]
    related = (weld[first] == parent[last]) | (weld[last] == parent[first])
    may &= ~(related & (weld[first] != 0) & (weld[last] != 0))
    bodies = np.sort(model.geom_bodyid[np.column_stack((first, last))], axis=1)
    signatures = (bodies[:, 0] << 16) + bodies[:, 1]
    may &= ~np.isin(signatures, _signatures(model))
    return in_order_of_types(model, np.column_stack((first, last))[may])


def in_order_of_types(model: mujoco.MjModel, pairs: NDArray[np.int_]) -> NDArray[np.int_]:
    """Return pairs of geoms (p, 2) in the order in which mj_geomDistance wants them."""
    # MuJoCo 3.3 returns the segment reversed if the types are in descending order.
    swapped = model.geom_type[pairs[:, 0]] > model.geom_type[pairs[:, 1]]
    return np.where(swapped[:, None], pairs[:, ::-1], pairs)


def _signatures(model: mujoco.MjModel) -> NDArray[np.int_]:
    """Return the excluded pairs of bodies, as (smaller id << 16) + larger id."""
    signatures = np.asarray(model.exclude_signature, np.int_)
    bodies = np.sort(np.column_stack((signatures >> 16, signatures & 0xFFFF)), axis=1)
    return np.asarray((bodies[:, 0] << 16) + bodies[:, 1])


class PlantDistances:
    """Distances of geoms of a simulation, and how the joints change them."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        self.pairs = colliding_pairs(model)
        """Pairs of geoms (p, 2)."""
        bounds = model.geom_rbound[self.pairs]
        # The sphere around a plane has no radius: planes are never too far.
        self._sizes = np.where((bounds == 0.0).any(axis=1), np.inf, bounds.sum(axis=1))

    def nearest(self, positions: Vector, most: int) -> list[Near]:
        """Return up to ``most`` pairs by distance, the nearest first, at positions (nv,)."""
        distances, segments = self._evaluate(positions)
        mujoco.mj_comPos(self._model, self._data)
        order = np.argsort(distances, kind='stable')[:most]
        return [
            self._near(float(distances[pair]), self.pairs[pair], segments[pair])
            for pair in order.tolist()
            if distances[pair] < FARTHEST
        ]

    def distances(self, positions: Vector) -> Vector:
        """Return the distances of all pairs (p,) [m] at positions (nv,), up to ``FARTHEST``."""
        return self._evaluate(positions)[0]

    def _evaluate(self, positions: Vector) -> tuple[Vector, Vector]:
        """Return distances (p,) and segments between nearest points (p, 6) [m]."""
        model, data, pairs = self._model, self._data, self.pairs
        data.qpos[:] = positions
        mujoco.mj_kinematics(model, data)
        centres = data.geom_xpos[pairs]
        apart = np.linalg.norm(centres[:, 0] - centres[:, 1], axis=1) - self._sizes
        distances, segments = np.full(len(pairs), FARTHEST), np.zeros((len(pairs), 6))
        for pair in np.flatnonzero(apart < FARTHEST).tolist():
            one, other = pairs[pair].tolist()
            distances[pair] = mujoco.mj_geomDistance(
                model, data, one, other, FARTHEST, segments[pair]
            )
        return distances, segments

    def _near(self, distance: float, geoms: NDArray[np.int_], segment: Vector) -> Near:
        model, data, rows = self._model, self._data, np.zeros((2, 3, self._model.nv))
        for row, geom, point in zip(rows, geoms, (segment[:3], segment[3:]), strict=True):
            mujoco.mj_jac(model, data, row, None, point, model.geom_bodyid[geom])
        normal = segment[3:] - segment[:3]
        size = float(np.linalg.norm(normal))
        if size < 1e-9:
            return Near(distance, np.zeros(model.nv))
        sign = 1.0 if distance > 0.0 else -1.0
        return Near(distance, (sign / size) * normal @ (rows[1] - rows[0]))
