"""Obstacles as drawings: solids as surfaces, boxes that links are kept in as edges."""

from collections.abc import Iterable

from mher_ros.robots.scene import KEEP_IN, Obstacle
from mher_ros.robots.solids import obstacle_solid, Solid
from mher_ros.robots.surfaces import triangles_of
from mher_ros.view.drawings import box_edges, Colour, Drawing
import numpy as np

EDGE_WIDTH = 0.005  # of a box that links are kept in [m]


def obstacle_drawings(obstacles: Iterable[Obstacle]) -> list[Drawing]:
    """Return the obstacles of a robot file, in the base frame."""
    return [_drawing(obstacle) for obstacle in obstacles]


def _drawing(obstacle: Obstacle) -> Drawing:
    if obstacle.shape == KEEP_IN:
        half = 0.5 * np.array(obstacle.size)
        edges = Solid(box_edges(-half, half)).at(obstacle.pose)
        return Drawing('lines', edges.vertices, Colour.BOX, EDGE_WIDTH)
    return Drawing('surface', triangles_of(obstacle_solid(obstacle)), Colour.OBSTACLE)
