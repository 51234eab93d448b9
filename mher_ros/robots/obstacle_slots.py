"""Obstacles that come, move and go while an arm is commanded."""

from collections.abc import Sequence

from mher_ros.robots.collision_model import CollisionModel, ignored_pairs, padded, Part
from mher_ros.robots.robot import Robot
from mher_ros.robots.solids import MOST, Solid
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SLOTS = 16  # obstacles at the same time
_TURNS = 2.0 * np.pi * np.arange(MOST // 2) / (MOST // 2)
_ROUND = np.column_stack((np.cos(_TURNS), np.sin(_TURNS)))
EMPTY = Solid(np.vstack([np.column_stack((_ROUND, np.full(MOST // 2, z))) for z in (-0.5, 0.5)]))
"""What an empty slot has: a solid with as many vertices as one can have."""


class ObstacleSlots(CollisionModel):
    """
    A fixed number of places for obstacles, each paired with all parts of an arm that move.

    The model is compiled once: ``put`` only writes vertices. An empty slot has a clearance of
    minus infinity, so its pairs are never too close. One thread may read this while another one
    writes only if both hold a lock; the thread that writes may always read.
    """

    def __init__(self, parts: Sequence[Part], arm: mujoco.MjModel, robot: Robot) -> None:
        """Take all parts of an arm, and the chain of its joints."""
        moving = [part for part in parts if part.body]
        empty = Part('', 0, EMPTY, is_obstacle=True)
        self._set_parts([empty] * SLOTS + moving, arm)
        pairs = [(slot, SLOTS + part) for slot in range(SLOTS) for part in range(len(moving))]
        self._clearance, self._ignored = robot.collision.clearance, ignored_pairs(robot)
        self._set_pairs(pairs, -np.inf)
        model, geoms = self.model, self.geoms[:SLOTS]
        # The frames of these meshes are the base frame; all of their vertices are searched.
        model.geom_quat[geoms] = (1.0, 0.0, 0.0, 0.0)
        model.mesh_graphadr[model.geom_dataid[geoms]] = -1
        self.speeds = np.zeros(len(pairs))
        """Largest speeds of obstacles (pairs,) [m/s]; 0: they rest."""
        self.known_at = np.zeros(len(pairs))
        """Times at which the places of obstacles were known (pairs,) [s]."""
        self.versions = np.zeros(SLOTS, np.int_)
        """How often each slot has changed (slots,)."""
        self.is_used = np.zeros(SLOTS, bool)
        """Which slots have an obstacle (slots,)."""

    @property
    def obstacles(self) -> list[Part]:
        """The obstacles that there are."""
        return [self.parts[slot] for slot in np.flatnonzero(self.is_used)]

    def pairs_of(self, slot: int) -> slice:
        """Return which pairs are those of a slot."""
        count = len(self.parts) - SLOTS
        return slice(slot * count, (slot + 1) * count)

    def margins(self, time: float) -> Vector:
        """Return the least distances for an arm that is at rest at ``time`` [s] (pairs,) [m]."""
        return self.clearances + self.speeds * np.maximum(time - self.known_at, 0.0)

    def put(self, slot: int, name: str, solid: Solid, speed: float, known_at: float) -> None:
        """Put an obstacle, given in the base frame, into a slot."""
        parts, pairs = list(self.parts), self.pairs_of(slot)
        parts[slot] = Part(name, 0, solid, is_obstacle=True)
        self.parts = tuple(parts)
        vertices = solid.vertices
        self.columns[slot] = padded(vertices, self.columns.shape[2]).T
        self.radii[slot] = solid.radius
        self.centres[slot] = centre = (vertices.min(axis=0) + vertices.max(axis=0)) / 2.0
        away = vertices - centre
        self.sizes[slot] = np.sqrt((away * away).sum(axis=1).max()) + solid.radius
        model, geom = self.model, self.geoms[slot]
        model.geom_pos[geom], model.geom_rbound[geom] = centre, self.sizes[slot]
        if len(solid.vertices) == 1:
            model.geom_type[geom] = mujoco.mjtGeom.mjGEOM_SPHERE
            model.geom_size[geom] = solid.radius
        else:
            model.geom_type[geom] = mujoco.mjtGeom.mjGEOM_MESH
            mesh = model.geom_dataid[geom]
            first, count = model.mesh_vertadr[mesh], len(vertices)
            model.mesh_vertnum[mesh] = count
            model.mesh_vert[first : first + count] = away
        self._set_geoms()
        self.clearances[pairs] = [
            -np.inf if frozenset((name, part.name)) in self._ignored else self._clearance
            for part in self.parts[SLOTS:]
        ]
        self.speeds[pairs], self.known_at[pairs] = speed, known_at
        self.is_used[slot] = True
        self.versions[slot] += 1

    def remove(self, slot: int) -> None:
        """Empty a slot."""
        self.clearances[self.pairs_of(slot)] = -np.inf
        self.speeds[self.pairs_of(slot)] = 0.0
        self.is_used[slot] = False
        self.versions[slot] += 1
