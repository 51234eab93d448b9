"""Simple shapes on the page besides the arm: balls, lines, arrows, point clouds, surfaces."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, TYPE_CHECKING

from mher_ros.interface import Vector
import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:  # nodes that only publish markers need the colours, but not viser
    import viser

LEAST_POINTS = {'ball': 1, 'cloud': 1, 'lines': 2, 'strip': 2, 'arrow': 2, 'surface': 3}
"""Least number of points of each kind of drawing; with fewer nothing is drawn."""


class Colour:
    """Colours (red, green, blue, opacity), each from 0 to 1."""

    GOAL, GOAL_CENTRE = (0.1, 0.8, 0.2, 0.3), (0.9, 0.1, 0.1, 1.0)
    AHEAD, REACHED = (1.0, 0.6, 0.0, 0.6), (0.1, 0.8, 0.2, 0.6)
    WORKSPACE, BOX = (0.6, 0.6, 0.6, 0.6), (0.9, 0.1, 0.1, 0.6)
    TRAIL, MOTION = (1.0, 0.6, 0.0, 0.9), (0.1, 0.4, 0.9, 0.9)
    VIRTUAL, OBSTACLE = (0.6, 0.2, 0.8, 0.8), (0.55, 0.42, 0.35, 0.8)
    PART, NEAR, HELD = (0.2, 0.5, 0.9, 0.35), (1.0, 0.7, 0.0, 0.6), (0.9, 0.1, 0.1, 0.7)
    TEXT = (0.1, 0.1, 0.1, 1.0)


@dataclasses.dataclass(frozen=True)
class Drawing:
    kind: str
    """A ball around one point, lines between pairs of points, a strip through all of them, an
    arrow from the first to the second, a cloud of points, or a surface of triangles."""
    points: Vector  # (n, 3) [m]
    rgba: tuple[float, float, float, float]  # each from 0 to 1
    size: float = 1.0
    """Radius of a ball, width of lines and arrows, side of a cloud's points [m]."""
    pose: tuple[float, ...] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    """Of a surface, whose points are relative to it: x, y, z [m], w, x, y, z."""

    @property
    def look(self) -> tuple[Any, ...]:
        return self.kind, self.rgba, self.size


class Drawings:
    """Drawings by name; unchanged ones are not sent again."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._shown: dict[str, tuple[Drawing, Any]] = {}

    def show(self, name: str, drawing: Drawing | None) -> None:
        """Replace the drawing with this name; None or too few points: remove it."""
        shown: tuple[Drawing | None, Any] = self._shown.get(name, (None, None))
        before, handle = shown
        if drawing is None or len(drawing.points) < LEAST_POINTS[drawing.kind]:
            if handle is not None:
                handle.remove()
                del self._shown[name]
            return
        if before is None or before.look != drawing.look:
            # viser replaces the node of the same name.
            handle = _add(self._server.scene, f'/drawings/{name}', drawing)
        elif np.array_equal(before.points, drawing.points):
            if before.pose == drawing.pose:
                return
            handle.position, handle.wxyz = drawing.pose[:3], drawing.pose[3:]
        elif drawing.kind == 'surface':
            handle = _add(self._server.scene, f'/drawings/{name}', drawing)
        elif drawing.kind == 'ball':
            handle.position = drawing.points[0]
        else:
            handle.points = _viser_points(drawing)
        self._shown[name] = drawing, handle

    def clear(self, prefix: str = '') -> None:
        """Remove all drawings whose names begin with ``prefix``."""
        for name in [name for name in self._shown if name.startswith(prefix)]:
            self.show(name, None)


def box_edges(low: ArrayLike, high: ArrayLike) -> Vector:
    """Return the ends (n, m) of the edges of a box between corners (m,), pair after pair."""
    corners = np.array([low, high], np.float64)
    size = corners.shape[1]
    picks = [
        (*others[:axis], end, *others[axis:])
        for axis in range(size)
        for others in itertools.product((0, 1), repeat=size - 1)
        for end in (0, 1)
    ]
    return corners[np.array(picks), range(size)]


def _add(scene: viser.SceneApi, name: str, drawing: Drawing) -> Any:
    red, green, blue, opacity = drawing.rgba
    colour = (round(255.0 * red), round(255.0 * green), round(255.0 * blue))
    size = drawing.size
    if drawing.kind == 'ball':
        return scene.add_icosphere(
            name,
            size,
            colour,
            opacity=opacity,
            position=drawing.points[0],
            cast_shadow=False,
            receive_shadow=False,
        )
    if drawing.kind == 'surface':
        return scene.add_mesh_simple(
            name,
            drawing.points.astype(np.float32),
            np.arange(len(drawing.points), dtype=np.uint32).reshape(-1, 3),
            color=colour,
            opacity=opacity,
            flat_shading=True,
            side='double',
            position=np.array(drawing.pose[:3]),
            wxyz=np.array(drawing.pose[3:]),
            cast_shadow=False,
            receive_shadow=False,
        )
    points = _viser_points(drawing)
    if drawing.kind == 'cloud':
        how: Any = {'point_size': size, 'point_shape': 'circle', 'precision': 'float32'}
        return scene.add_point_cloud(name, points, colour, **how)
    if drawing.kind == 'arrow':
        how = {'shaft_radius': size / 2.0, 'head_radius': size, 'head_length': 3.0 * size}
        return scene.add_arrows(name, points, colour, **how)
    return scene.add_line_segments(name, points, colour, thickness=size)


def _viser_points(drawing: Drawing) -> NDArray[np.float32]:
    """Return points of a cloud (n, 3), or starts and ends of lines and arrows (n, 2, 3)."""
    points = drawing.points.astype(np.float32)
    if drawing.kind == 'cloud':
        return points
    if drawing.kind == 'arrow':
        return points[None, :2]
    if drawing.kind == 'strip':
        return np.stack([points[:-1], points[1:]], axis=1)
    return points[: len(points) // 2 * 2].reshape(-1, 2, 3)
