"""Convex solids for collision checks, from shapes of a URDF, from meshes and from obstacles."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import functools
import itertools
import math
from pathlib import Path
from xml.etree.ElementTree import Element

from mher_ros.files import read_at_most
from mher_ros.robots.description import DescriptionError, Pose
from mher_ros.robots.model_file import find_file
from mher_ros.robots.scene import Obstacle, Vector3
from mher_ros.robots.urdf import numbers_of
import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial import ConvexHull, QhullError

Vector = NDArray[np.float64]

MOST = 64  # vertices of a solid
DIRECTIONS = 32  # in which the extreme vertices of a mesh are kept, before the rest is added
SIDES = 10  # of the prism around a cylinder: its edges are 5 % farther from the axis
MERGED = 2.0  # volume of a hull around solids over their own, up to which it replaces them
INSIDE = 1e-6  # rounding error of a distance from a hull [m]
HEAVY = 1e3  # weight of the sum of barycentric coordinates [m]
MAX_MESH_BYTES = 2**25


class MeshError(DescriptionError):
    """A mesh cannot be read."""


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


def obstacle_solid(obstacle: Obstacle) -> Solid:
    """Return an obstacle in the base frame."""
    return shape_solid(obstacle.shape, obstacle.size).at(obstacle.pose)


def shape_solid(shape: str, size: Vector3) -> Solid:
    """Return a shape of the size of an ``Obstacle``, at the origin."""
    if shape == 'box':
        return _box(np.array(size))
    if shape == 'sphere':
        return Solid(np.zeros((1, 3)), size[0])
    if shape == 'cylinder':
        return _cylinder(*size[:2])
    return Solid(np.zeros((1, 3)), normal=np.array((0.0, 0.0, 1.0)))


def urdf_solid(shape: Element, folder: Path) -> Solid:
    """
    Return the solid of a child of ``geometry``; MeshError if a mesh cannot be read.

    Meshes are named relative to ``folder``.
    """
    try:
        if shape.tag == 'box':
            return _box(np.array(numbers_of(shape, 'size', '')))
        if shape.tag == 'sphere':
            return Solid(np.zeros((1, 3)), float(shape.attrib['radius']))
        if shape.tag in ('cylinder', 'capsule'):
            radius, length = float(shape.attrib['radius']), float(shape.attrib['length'])
            if shape.tag == 'cylinder':
                return _cylinder(radius, length)
            return Solid(np.array(((0.0, 0.0, -length / 2), (0.0, 0.0, length / 2))), radius)
        if shape.tag != 'mesh':
            raise ValueError(f'box, sphere, cylinder or mesh is expected, got {shape.tag[:80]}')
        scale = numbers_of(shape, 'scale', '1 1 1')
    except (KeyError, ValueError) as error:
        raise DescriptionError(f'a collision shape of the URDF: {error}') from None
    path = find_file(shape.get('filename', ''), folder)
    return _mesh_solid(path, path.stat().st_mtime_ns, (scale[0], scale[1], scale[2]))


@functools.lru_cache(maxsize=256)
def _mesh_solid(path: Path, changed: int, scale: tuple[float, float, float]) -> Solid:
    """Return the solid around a mesh; ``changed`` is the time of its last change [ns]."""
    return hull_of(mesh_vertices(path) * scale)


def mesh_vertices(path: Path) -> Vector:
    """Return the vertices (m, 3) of an STL or OBJ file."""
    kind = path.suffix.lower()
    if kind not in ('.stl', '.obj'):
        raise MeshError(f'{path.name}: an STL or OBJ file is expected')
    content = read_at_most(path, MAX_MESH_BYTES)
    try:
        if kind == '.stl' and len(content) == 84 + 50 * int.from_bytes(content[80:84], 'little'):
            facets = np.frombuffer(content, _FACET, offset=84)
            found = facets['vertices'].reshape(-1, 3).astype(np.float64)
        else:
            word = b'vertex' if kind == '.stl' else b'v'
            lines = (line.split() for line in content.splitlines())
            rows = [line[1:4] for line in lines if line and line[0] == word]
            found = np.array(rows, np.float64).reshape(-1, 3)
    except ValueError as error:
        raise MeshError(f'{path.name}: vertices are three numbers; {error}') from None
    if not len(found) or not np.isfinite(found).all():
        raise MeshError(f'{path.name}: vertices of finite numbers are expected')
    return np.unique(found, axis=0)


_FACET = np.dtype([('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')])


def hull_of(points: Vector) -> Solid:
    """
    Return a solid around the convex hull of ``points`` (m, 3), with at most ``MOST`` vertices.

    If there are more, its radius is the largest distance of a point from the hull of the rest.
    """
    try:
        points = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # flat, or a few points
        pass
    if len(points) <= MOST:
        return Solid(points)
    extreme = np.unique(np.argmax(points @ directions(DIRECTIONS).T, axis=0))
    kept = extreme.tolist()
    while len(kept) < MOST:
        outside = _outside(points, points[kept])
        farthest = int(np.argmax(outside))
        if outside[farthest] <= 0.0 or farthest in kept:
            break
        kept.append(farthest)
    hull = points[kept]
    outside = _outside(points, hull)
    far = [_distance(point, hull) for point in points[outside > 0.0]]
    return Solid(hull, max(far, default=0.0))


def merged(solids: Sequence[Solid]) -> list[Solid]:
    """Return one hull around all solids if that is hardly larger, else the solids."""
    if len(solids) < 2 or any(solid.radius or solid.normal is not None for solid in solids):
        return list(solids)
    whole = hull_of(np.vstack([solid.vertices for solid in solids]))
    if whole.volume <= MERGED * sum(solid.volume for solid in solids):
        return [whole]
    return list(solids)


def _box(edges: Vector) -> Solid:
    return Solid(np.array(list(itertools.product((-0.5, 0.5), repeat=3))) * edges)


def _cylinder(radius: float, length: float) -> Solid:
    """Return a prism around a cylinder along z."""
    angles = 2.0 * math.pi * np.arange(SIDES) / SIDES
    around = radius / math.cos(math.pi / SIDES) * np.stack((np.cos(angles), np.sin(angles)), 1)
    ends = [np.column_stack((around, np.full(SIDES, z))) for z in (-length / 2, length / 2)]
    return Solid(np.vstack(ends))


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


def _distance(point: Vector, hull: Vector) -> float:
    """Return an upper bound of the distance [m] of a point (3,) from a hull (m, 3)."""
    rows = np.vstack((hull.T, np.full(len(hull), HEAVY)))
    shares, _ = nnls(rows, np.append(point, HEAVY))
    shares /= shares.sum()
    return float(np.linalg.norm(shares @ hull - point))
