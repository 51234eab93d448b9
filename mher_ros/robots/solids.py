"""Convex solids for collision checks: primitives, hulls of meshes, and obstacles."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
import itertools
import math
from pathlib import Path

from mher_ros.robots.description import Pose
from mher_ros.robots.mesh_file import mesh_vertices, MeshError
from mher_ros.robots.scene import FARTHEST, KEEP_IN, LARGEST, Obstacle, Vector3
import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

Vector = NDArray[np.float64]

MOST = 64  # vertices of a solid
DIRECTIONS = 32  # in which the extreme vertices of a mesh are kept, before the rest is added
CANDIDATES = 4000  # vertices of a mesh from which that rest is taken
EXACT = 2000  # distances of one mesh that are computed exactly; bounds stand for the others
BLOCK = 10_000  # points whose distances are computed at the same time
SIDES = 10  # of the prism around a cylinder: its edges are 5 % farther from the axis
MERGED = 2.0  # volume of a hull around solids over their own, up to which it replaces them
INSIDE = 1e-6  # rounding error of a distance from a hull [m]
FLAT = 1e-4  # thickness of a mesh that has none [m]
HEAVY = 1e3  # weight of the sum of barycentric coordinates [m]


@dataclasses.dataclass(frozen=True, eq=False)
class Solid:
    """All points within ``radius`` of the convex hull of ``vertices``."""

    vertices: Vector
    """(m, 3) [m], at most ``MOST``."""
    radius: float = 0.0
    """[m]; above 0 for spheres, and for meshes of which some vertices are left out."""
    normal: Vector | None = None
    """(3,): the solid is everything below the plane through its only vertex."""

    def at(self, pose: Pose) -> Solid:
        """Return the solid moved by ``pose``."""
        position, orientation = pose
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, orientation)
        rotation = flat.reshape(3, 3)
        normal = None if self.normal is None else rotation @ self.normal
        return Solid(self.vertices @ rotation.T + position, self.radius, normal)

    def contains(self, point: Vector) -> bool:
        """Return whether a point (3,) is inside."""
        if self.normal is not None:
            return bool(self.normal @ (point - self.vertices[0]) <= 0.0)
        return _distance(point, self.vertices) <= self.radius + INSIDE

    @property
    def volume(self) -> float:
        """Volume of the hull of the vertices [m^3]; 0 if it is flat."""
        try:
            return float(ConvexHull(self.vertices).volume)
        except (QhullError, ValueError):
            return 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class LinkShape:
    """A collision shape of a link, or the reason why it has none."""

    link: str
    solid: Solid | None
    """In the frame of the link."""
    name: str = ''
    trouble: str = ''


def obstacle_solids(obstacle: Obstacle) -> list[Solid]:
    """Return an obstacle in the base frame; of a keep-in box the six walls."""
    if obstacle.shape != KEEP_IN:
        return [obstacle_solid(obstacle)]
    walls = []
    for axis, side in itertools.product(range(3), (-1.0, 1.0)):
        outward = side * np.eye(3)[axis]
        wall = Solid(0.5 * obstacle.size[axis] * outward[None], normal=-outward)
        walls.append(wall.at(obstacle.pose))
    return walls


def obstacle_solid(obstacle: Obstacle) -> Solid:
    """Return an obstacle of one solid in the base frame."""
    if obstacle.shape != 'mesh':
        return shape_solid(obstacle.shape, obstacle.size).at(obstacle.pose)
    solid = mesh_solid(Path(obstacle.file), obstacle.scale)
    edges = np.ptp(solid.vertices, axis=0)
    if edges.max() > LARGEST:
        raise MeshError(
            f'a mesh of at most {LARGEST:g} m is expected, got one of {edges.max():g} m; scale '
            'gives its unit'
        )
    if np.abs(solid.vertices).max() > FARTHEST:
        raise MeshError(
            f'a mesh within {FARTHEST:g} m of its origin is expected, got one at '
            f'{solid.vertices.mean(axis=0).round(3).tolist()}; scale gives its unit'
        )
    return solid.at(obstacle.pose)


def shape_solid(shape: str, size: Vector3) -> Solid:
    """Return a shape of the size of an ``Obstacle``, at the origin."""
    if shape == 'box':
        return box_solid(np.array(size))
    if shape == 'sphere':
        return Solid(np.zeros((1, 3)), size[0])
    if shape == 'cylinder':
        return cylinder_solid(*size[:2])
    if shape == 'plane':
        return plane_solid()
    raise ValueError(f'a solid is expected, got {shape!r}')


def mesh_solid(path: Path, scale: Vector3) -> Solid:
    """Return the solid around a mesh; MeshError if it cannot be read."""
    return _mesh_solid(path, path.stat().st_mtime_ns, scale)


@functools.lru_cache(maxsize=256)
def _mesh_solid(path: Path, changed: int, scale: Vector3) -> Solid:
    return hull_of(mesh_vertices(path, scale))


def hull_of(points: Vector) -> Solid:
    """
    Return a solid around the convex hull of ``points`` (m, 3), with at most ``MOST`` vertices.

    If there are more, its radius is the largest distance of a point from the hull of the rest.
    """
    points = hull_vertices(points)
    if len(points) <= MOST:
        return Solid(points)
    extreme = np.unique(np.argmax(points @ directions(DIRECTIONS).T, axis=0))
    some = points[:: math.ceil(len(points) / CANDIDATES)]
    kept = list(points[extreme])
    while len(kept) < MOST:
        outside = _outside(some, np.array(kept))
        farthest = int(np.argmax(outside))
        if outside[farthest] <= 0.0 or (some[farthest] == kept).all(axis=1).any():
            break
        kept.append(some[farthest])
    hull = np.array(kept)
    return Solid(hull, _farthest(points, hull))


def hull_vertices(points: Vector) -> Vector:
    """Return the points (m, 3) that are vertices of their convex hull, which may be flat."""
    try:
        return points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # flat, or a few points
        pass
    centred = points - points.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    try:
        return points[ConvexHull(centred @ axes[:2].T).vertices]
    except (QhullError, ValueError):  # on a line
        along = centred @ axes[0]
        return points[np.unique((along.argmin(), along.argmax()))]


def with_thickness(vertices: Vector) -> Vector:
    """Return vertices of a hull that is not flat: MuJoCo takes no flat mesh."""
    if Solid(vertices).volume >= FLAT**3:
        return vertices
    shifts = FLAT * np.vstack((np.eye(3), -np.eye(3)))
    return (vertices[:, None] + shifts).reshape(-1, 3)


def merged(solids: Sequence[Solid]) -> list[Solid]:
    """Return one hull around all solids if that is hardly larger, else the solids."""
    if len(solids) < 2 or any(solid.radius or solid.normal is not None for solid in solids):
        return list(solids)
    whole = hull_of(np.vstack([solid.vertices for solid in solids]))
    if whole.volume <= MERGED * sum(solid.volume for solid in solids):
        return [whole]
    return list(solids)


def box_solid(edges: Vector) -> Solid:
    return Solid(np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * edges)


def capsule_solid(radius: float, length: float) -> Solid:
    """Return a capsule along z; ``length`` is that between the centres of its ends."""
    return Solid(np.array(((0.0, 0.0, -length / 2), (0.0, 0.0, length / 2))), radius)


def plane_solid() -> Solid:
    """Return everything below the plane z = 0."""
    return Solid(np.zeros((1, 3)), normal=np.array((0.0, 0.0, 1.0)))


def cylinder_solid(radius: float, length: float) -> Solid:
    """Return a prism around a cylinder along z."""
    angles = 2.0 * math.pi * np.arange(SIDES) / SIDES
    around = radius / math.cos(math.pi / SIDES) * np.stack((np.cos(angles), np.sin(angles)), 1)
    ends = [np.column_stack((around, np.full(SIDES, z))) for z in (-length / 2, length / 2)]
    return Solid(np.vstack(ends))


def ellipsoid_solid(radii: Vector) -> Solid:
    """Return a polyhedron around an ellipsoid with these half axes (3,)."""
    vertices = directions(MOST)
    inside = -ConvexHull(vertices).equations[:, 3].max()  # radius of the ball in the hull
    return Solid(vertices / inside * radii)


def directions(count: int) -> Vector:
    """Return unit vectors (count, 3) that are spread evenly."""
    index = np.arange(count) + 0.5
    height, turn = 1.0 - 2.0 * index / count, math.pi * (1.0 + math.sqrt(5.0)) * index
    wide = np.sqrt(1.0 - height**2)
    return np.column_stack((wide * np.cos(turn), wide * np.sin(turn), height))


def _outside(points: Vector, hull: Vector) -> Vector:
    """Return how far points (m, 3) are beyond the faces of a hull (m,) [m]; 0 inside."""
    try:
        faces = ConvexHull(hull).equations
    except (QhullError, ValueError):  # flat so far: any other point adds to it
        return np.linalg.norm(points - hull.mean(axis=0), axis=1)
    beyond: Vector = (points @ faces[:, :3].T + faces[:, 3]).max(axis=1)
    return np.maximum(beyond - 1e-9, 0.0)


def _farthest(points: Vector, hull: Vector) -> float:
    """Return an upper bound of the largest distance [m] of points (m, 3) from a hull (k, 3)."""
    most, left = 0.0, EXACT
    for first in range(0, len(points), BLOCK):
        block = points[first : first + BLOCK]
        block = block[_outside(block, hull) > 0.0]
        bounds = _bounds(block, hull)
        for index in np.argsort(-bounds):
            if bounds[index] <= most:  # so are all that follow
                break
            if not left:
                most = float(bounds[index])  # takes no more time, and is never too small
                break
            left -= 1
            most = max(most, _distance(block[index], hull))
    return most


def _bounds(points: Vector, hull: Vector) -> Vector:
    """Return upper bounds of distances (m,): from a point of the face that each is beyond."""
    try:
        faces = ConvexHull(hull)
    except (QhullError, ValueError):  # flat
        apart = points[:, None] - hull
        return np.asarray(np.sqrt((apart * apart).sum(axis=2).min(axis=1)))
    beyond = points @ faces.equations[:, :3].T + faces.equations[:, 3]
    corners = hull[faces.simplices[beyond.argmax(axis=1)]]
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    along = (np.linalg.pinv(edges) @ (points - corners[:, 0])[:, :, None])[:, :, 0]
    shares = np.column_stack((1.0 - along.sum(axis=1), along)).clip(0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    nearest = (shares[:, None] @ corners)[:, 0]
    return np.asarray(np.linalg.norm(points - nearest, axis=1))


def _distance(point: Vector, hull: Vector) -> float:
    """Return an upper bound of the distance [m] of a point (3,) from a hull (m, 3)."""
    rows = np.vstack((hull.T, np.full(len(hull), HEAVY)))
    shares, _ = nnls(rows, np.append(point, HEAVY))
    shares /= shares.sum()
    return float(np.linalg.norm(shares @ hull - point))
