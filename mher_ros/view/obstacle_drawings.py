"""Obstacles as drawings: solids as surfaces, boxes that links are kept in as edges."""

from collections.abc import Iterable, Sequence

from mher_ros.interface import Vector
from mher_ros.robots.collision_model import Part
from mher_ros.robots.surfaces import triangles_of
from mher_ros.view.drawings import box_edges, Colour, Drawing
import numpy as np

WALLS = 6  # planes with the same name that are the walls of a box
EDGE_WIDTH = 0.005  # of such a box [m]


def obstacle_drawings(parts: Iterable[Part]) -> list[Drawing]:
    """Return the obstacles among the parts of an arm, in the base frame."""
    by_name: dict[str, list[Part]] = {}
    for part in parts:
        if part.is_obstacle:
            by_name.setdefault(part.name, []).append(part)
    drawings: list[Drawing] = []
    for found in by_name.values():
        if len(found) == WALLS:
            drawings.append(Drawing('lines', _edges(found), Colour.BOX, EDGE_WIDTH))
        else:
            drawings += [
                Drawing('surface', triangles_of(part.solid), Colour.OBSTACLE) for part in found
            ]
    return drawings


def _edges(walls: Sequence[Part]) -> Vector:
    """Return the edges of a box (24, 3) [m], given its walls: two for each axis."""
    points = np.array([wall.solid.vertices[0] for wall in walls])
    centre = points.mean(axis=0)
    away = (points - centre).reshape(3, 2, 3)
    shares = box_edges(np.zeros(3), np.ones(3))
    low, high = (1.0 - shares) @ away[:, 0], shares @ away[:, 1]
    return np.asarray(centre + low + high)
