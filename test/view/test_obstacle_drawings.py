"""Obstacles as the page and RViz show them."""

from mher_ros.robots.collision_model import Part
from mher_ros.robots.description import pose_of
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import obstacle_solid, shape_solid, Solid
from mher_ros.view.obstacle_drawings import obstacle_drawings
import numpy as np

EDGES = np.array((0.4, 0.6, 0.8))


def part(name, solid, is_obstacle=True):
    return Part(name, 0, solid, is_obstacle=is_obstacle)


def test_each_solid_is_a_surface_and_the_arm_is_none():
    box = obstacle_solid(Obstacle('box', 'box', (1.0, 2.0, 3.0), size=tuple(EDGES)))
    ball = shape_solid('sphere', (0.1, 0.0, 0.0))
    drawings = obstacle_drawings([part('link', ball, False), part('box', box), part('b', ball)])
    assert [drawing.kind for drawing in drawings] == ['surface', 'surface']
    np.testing.assert_allclose(np.ptp(drawings[0].points, axis=0), EDGES)
    np.testing.assert_allclose(drawings[0].points.min(axis=0), (0.8, 1.7, 2.6))


def test_six_walls_are_the_edges_of_the_box_between_them():
    pose = pose_of((1.0, 2.0, 3.0), (0.1, 0.2, 0.3))
    walls = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            outward = side * np.eye(3)[axis]
            wall = Solid(0.5 * EDGES[axis] * outward[None], normal=-outward)
            walls.append(part('cage', wall.at(pose)))
    (drawing,) = obstacle_drawings(walls)
    assert drawing.kind == 'lines'
    ends = drawing.points.reshape(12, 2, 3)
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    np.testing.assert_allclose(np.sort(lengths), np.sort(np.repeat(EDGES, 4)))
    corners = obstacle_solid(
        Obstacle('cage', 'box', (1.0, 2.0, 3.0), (0.1, 0.2, 0.3), tuple(EDGES))
    ).vertices
    away = np.linalg.norm(drawing.points[:, None] - corners, axis=2).min(axis=1)
    np.testing.assert_allclose(away, 0.0, atol=1e-9)
