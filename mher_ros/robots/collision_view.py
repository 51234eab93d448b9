"""The collision shapes of an arm in a posture, and how near they are to others, for display."""

from collections.abc import Mapping
import dataclasses

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import CollisionModel, PairDistances, Part
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FARTHEST = 0.5  # distance up to which distances are computed [m]
NEAR = 0.05  # distance up to which parts count as near [m]
HELD = 0.01  # distance beyond the clearance up to which parts hold each other back [m]
CLOSE = 1.3  # distance over clearance, up to which parts that are always near count as near


@dataclasses.dataclass(frozen=True, eq=False)
class Gap:
    """The gap between two parts that must not touch."""

    parts: tuple[Part, Part]
    distance: float
    """[m]; negative: they overlap."""
    room: float
    """Distance beyond the clearance [m]."""
    ends: Vector
    """A point on the surface of each, at this distance (2, 3) [m]."""
    is_near: bool
    is_held: bool
    """Whether they are so near that they hold each other back."""


class CollisionView:
    """
    The collision shapes of an arm. It computes poses and distances for display only.

    It has models of its own, so it needs no lock of the safety filter.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._order, self._clearance = arm.order, arm.clearance
        self.parts = tuple(part for part in arm.parts if not part.is_obstacle)
        self._bodies = np.array([part.body for part in self.parts], np.int_)
        self._data, self._model = mujoco.MjData(arm.model), arm.model
        self._slots = arm.obstacle_slots()
        self._models: list[CollisionModel] = [
            one for one in (arm.collision, self._slots) if one is not None
        ]
        self._queries = [PairDistances(one) for one in self._models]
        self._taken: dict[int, Part] = {}

    def take(self, obstacles: Mapping[int, Part]) -> None:
        """Take the obstacles at run time, by their slots."""
        slots = self._slots
        if slots is None:
            return
        for slot in self._taken.keys() - obstacles.keys():
            slots.remove(slot)
            del self._taken[slot]
        for slot, part in obstacles.items():
            if self._taken.get(slot) is not part:
                slots.put(slot, part.name, part.solid, 0.0, 0.0)
                self._taken[slot] = part

    def poses(self, positions: Vector) -> tuple[Vector, Vector]:
        """Return positions (p, 3) and orientations (p, 4) of the frames of ``parts``."""
        self._data.qpos[:] = positions[self._order]
        mujoco.mj_kinematics(self._model, self._data)
        return self._data.xpos[self._bodies], self._data.xquat[self._bodies]

    def gaps(self, positions: Vector) -> list[Gap]:
        """Return gaps of up to ``FARTHEST`` at joint positions (n,), the least room first."""
        found: list[Gap] = []
        for model, query in zip(self._models, self._queries, strict=True):
            query.move(positions[self._order])
            pairs = np.flatnonzero(np.isfinite(model.clearances))
            if pairs.size:
                found += self._gaps(model, query, pairs)
        return sorted(found, key=lambda gap: gap.room)

    def _gaps(
        self, model: CollisionModel, query: PairDistances, pairs: NDArray[np.int_]
    ) -> list[Gap]:
        local, points, far = query.planes(pairs, FARTHEST)
        pairs, local, points = pairs[~far], local[~far], points[~far]
        normals = query.in_base(pairs, local)
        distances, clearances = query.gaps(pairs, normals), model.clearances[pairs]
        last = query.points_in_base(pairs, points)
        last -= model.radii[model.pairs[pairs, 1], None] * normals
        ends = np.stack((last - distances[:, None] * normals, last), axis=1)
        # Parts that are always near to each other have a smaller clearance.
        near = np.where(clearances < self._clearance, CLOSE * clearances, NEAR)
        held = np.where(clearances < self._clearance, clearances, clearances + HELD)
        return [
            Gap(
                (model.parts[one], model.parts[other]),
                float(distances[index]),
                float(distances[index] - clearances[index]),
                ends[index],
                bool(distances[index] <= near[index]),
                bool(distances[index] <= held[index]),
            )
            for index, (one, other) in enumerate(model.pairs[pairs].tolist())
        ]
