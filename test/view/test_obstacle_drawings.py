"""Obstacles as the page and RViz show them."""

from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import obstacle_solid
from mher_ros.view.obstacle_drawings import obstacle_drawings
import numpy as np

EDGES = (0.4, 0.6, 0.8)
PLACE, TURN = (1.0, 2.0, 3.0), (0.1, 0.2, 0.3)


def test_each_solid_is_a_surface():
    box = Obstacle('box', 'box', PLACE, size=EDGES)
    ball = Obstacle('ball', 'sphere', PLACE, size=(0.1, 0.0, 0.0))
    drawings = obstacle_drawings([box, ball])
    assert [drawing.kind for drawing in drawings] == ['surface', 'surface']
    np.testing.assert_allclose(np.ptp(drawings[0].points, axis=0), EDGES)
    np.testing.assert_allclose(drawings[0].points.min(axis=0), (0.8, 1.7, 2.6))
    away = np.linalg.norm(drawings[1].points - PLACE, axis=1)
    np.testing.assert_allclose(away, 0.1)


def test_a_box_that_links_are_kept_in_is_drawn_by_its_edges():
    (drawing,) = obstacle_drawings([Obstacle('cage', 'keep_in', PLACE, TURN, EDGES)])
    assert drawing.kind == 'lines'
    ends = drawing.points.reshape(12, 2, 3)
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    np.testing.assert_allclose(np.sort(lengths), np.sort(np.repeat(EDGES, 4)))
    corners = obstacle_solid(Obstacle('cage', 'box', PLACE, TURN, EDGES)).vertices
    away = np.linalg.norm(drawing.points[:, None] - corners, axis=2).min(axis=1)
    np.testing.assert_allclose(away, 0.0, atol=1e-9)
