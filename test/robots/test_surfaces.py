"""Triangles that are drawn for solids."""

from hypothesis import given, strategies
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import hull_of, obstacle_solid, Solid
from mher_ros.robots.surfaces import PLANE_SIDE, triangles_of
import numpy as np
import pytest

BOX = Obstacle('box', 'box', (0.1, 0.2, 0.3), (0.3, 0.2, 0.1), (0.2, 0.4, 0.6))
TALL = np.array(((0.0, 0.0, -0.3), (0.0, 0.0, 0.3)))


def volume(triangles):
    """Return the volume inside (positive if the corners are counter-clockwise from outside)."""
    a, b, c = triangles.reshape(-1, 3, 3).transpose(1, 0, 2)
    return float((a * np.cross(b, c)).sum() / 6.0)


def test_a_box_has_its_twelve_triangles():
    triangles = triangles_of(obstacle_solid(BOX))
    assert triangles.shape == (36, 3)
    assert volume(triangles) == pytest.approx(0.2 * 0.4 * 0.6)


@pytest.mark.parametrize(
    ('solid', 'expected'),
    [
        (Solid(np.zeros((1, 3)), 0.2), 4.0 / 3.0 * np.pi * 0.2**3),
        (Solid(TALL, 0.1), np.pi * 0.1**2 * 0.6 + 4.0 / 3.0 * np.pi * 0.1**3),
    ],
)
def test_round_solids_are_a_little_smaller(solid, expected):
    assert 0.85 * expected < volume(triangles_of(solid)) < expected


@given(strategies.integers(0, 2**32 - 1), strategies.integers(4, 300))
def test_all_corners_are_on_the_surface_of_any_hull(seed, count):
    points = np.random.default_rng(seed).normal(size=(count, 3))
    solid = hull_of(points)
    triangles = triangles_of(solid)
    assert volume(triangles) >= volume(triangles_of(Solid(solid.vertices))) > 0.0
    away = np.linalg.norm(triangles[:, None] - solid.vertices, axis=2).min(axis=1)
    assert away == pytest.approx(solid.radius, abs=1e-9)
    assert all(solid.contains(corner) for corner in triangles[::10])


@pytest.mark.parametrize('radius', [0.0, 0.01])
@pytest.mark.parametrize('corners', [1, 2, 3, 4])
def test_flat_solids_are_drawn_too(corners, radius):
    flat = np.array(((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (1.0, 1.0, 0.0)))
    triangles = triangles_of(Solid(flat[:corners], radius))
    assert len(triangles) and len(triangles) % 3 == 0
    assert np.isfinite(triangles).all()
    assert volume(triangles) > 0.0


def test_a_plane_is_a_square_whose_front_is_outside():
    wall = Obstacle('wall', 'plane', (0.5, 0.1, 0.2), (0.0, np.pi / 2.0, 0.0))
    triangles = triangles_of(obstacle_solid(wall))
    assert triangles.mean(axis=0) == pytest.approx((0.5, 0.1, 0.2))
    assert triangles[:, 0] == pytest.approx(0.5)
    assert np.ptp(triangles, axis=0)[1:] == pytest.approx(PLANE_SIDE)
    for a, b, c in triangles.reshape(-1, 3, 3):
        assert np.cross(b - a, c - a)[0] > 0.0
