"""The surfaces of solids as triangles, to draw them."""

from __future__ import annotations

import itertools

from mher_ros.robots.solids import directions, Solid
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

Vector = NDArray[np.float64]

PLANE_SIDE = 2.0  # of the square that stands for a plane [m]
ROUND = 64  # points on the surface of a sphere
CAPSULE = 2  # most vertices of a solid that is drawn with round ends
THIN = 1e-4  # half of the thickness of a solid that has none [m]


def triangles_of(solid: Solid) -> Vector:
    """
    Return the corners of triangles on the surface of a solid, three by three (3 n, 3) [m].

    They are counter-clockwise, seen from outside. Their corners are on the surface: spheres and
    capsules are drawn a little smaller than they are. A plane is a square around its vertex.
    """
    if solid.normal is not None:
        return _square(solid.vertices[0], solid.normal)
    points = solid.vertices
    if solid.radius and len(points) <= CAPSULE:
        points = _spread(points, solid.radius * directions(ROUND))
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        points = _spread(points, max(solid.radius, THIN) * np.vstack((np.eye(3), -np.eye(3))))
        hull = ConvexHull(points)
    else:
        if solid.radius and len(solid.vertices) > CAPSULE:
            points = points + solid.radius * _vertex_normals(hull, len(points))
    corners = points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = (normals * hull.equations[:, :3]).sum(axis=1) < 0.0
    corners[inward] = corners[inward, ::-1]
    return np.asarray(corners.reshape(-1, 3), np.float64)


def _spread(points: Vector, offsets: Vector) -> Vector:
    """Return points (m, 3) moved by each of the offsets (k, 3): (m k, 3)."""
    return np.asarray((points[:, None] + offsets).reshape(-1, 3))


def _vertex_normals(hull: ConvexHull, count: int) -> Vector:
    """Return unit vectors (count, 3), the means of the normals of the faces at each vertex."""
    normals = np.zeros((count, 3))
    for corner in range(3):
        np.add.at(normals, hull.simplices[:, corner], hull.equations[:, :3])
    sizes = np.linalg.norm(normals, axis=1, keepdims=True)
    return np.asarray(normals / np.maximum(sizes, 1e-9))


def _square(centre: Vector, normal: Vector) -> Vector:
    """Return two triangles (6, 3) [m]."""
    along = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    along /= np.linalg.norm(along)
    across = np.cross(normal, along)
    half = PLANE_SIDE / 2.0
    a, b, d, c = (
        centre + half * (x * along + y * across) for x, y in itertools.product((-1, 1), repeat=2)
    )
    return np.array((a, d, c, a, c, b))
