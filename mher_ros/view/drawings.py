"""Simple things on the page besides the arm: balls, lines, arrows, clouds of points."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
import viser

__all__ = ['Drawing', 'Drawings']

KINDS = ('ball', 'lines', 'strip', 'arrow', 'cloud')


@dataclasses.dataclass(frozen=True)
class Drawing:
    """One thing to draw."""

    kind: str
    """
    One of ``KINDS``.

    A ball around the one point, lines between pairs of points, a strip through all of them, an
    arrow from the first to the second, a cloud of them.
    """
    points: NDArray[np.float64]
    """(n, 3) [m]"""
    rgba: tuple[float, float, float, float]
    """Each from 0 to 1."""
    size: float
    """Radius of the ball, width of lines and of the arrow, side of the cloud's points [m]."""

    def is_like(self, other: Drawing | None) -> bool:
        """Return whether nothing would change on the page."""
        return (
            other is not None
            and (self.kind, self.rgba, self.size) == (other.kind, other.rgba, other.size)
            and np.array_equal(self.points, other.points)
        )


class Drawings:
    """Drawings by name; what does not change is not sent again."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._shown: dict[str, tuple[Drawing, Any]] = {}

    def show(self, name: str, drawing: Drawing | None) -> None:
        """Draw it in place of what has that name; None or too few points: take that away."""
        before, handle = self._shown.get(name, (None, None))
        if drawing is not None and len(drawing.points) < _least_points(drawing.kind):
            drawing = None
        if drawing is not None and drawing.is_like(before):
            return
        if drawing is None:
            if handle is not None:
                handle.remove()
                del self._shown[name]
            return
        if before is not None and _can_follow(before, drawing):
            _move(handle, drawing)
        else:
            # A new node of the same name takes the old one's place.
            handle = _add(self._server.scene, f'/drawings/{name}', drawing)
        self._shown[name] = drawing, handle

    def clear(self, prefix: str = '') -> None:
        """Take away all whose names begin like this."""
        for name in [name for name in self._shown if name.startswith(prefix)]:
            self.show(name, None)


def _least_points(kind: str) -> int:
    return 1 if kind in ('ball', 'cloud') else 2


def _can_follow(before: Drawing, drawing: Drawing) -> bool:
    return (before.kind, before.rgba, before.size) == (drawing.kind, drawing.rgba, drawing.size)


def _move(handle: Any, drawing: Drawing) -> None:
    if drawing.kind == 'ball':
        handle.position = drawing.points[0]
    elif drawing.kind == 'cloud':
        handle.points = drawing.points.astype(np.float32)
    elif drawing.kind == 'arrow':
        handle.points = drawing.points[None, :2].astype(np.float32)
    else:
        handle.points = _segments(drawing)


def _add(scene: viser.SceneApi, name: str, drawing: Drawing) -> Any:
    red, green, blue, opacity = drawing.rgba
    colour = (round(255.0 * red), round(255.0 * green), round(255.0 * blue))
    if drawing.kind == 'ball':
        return scene.add_icosphere(
            name,
            drawing.size,
            colour,
            opacity=opacity,
            position=drawing.points[0],
            cast_shadow=False,
            receive_shadow=False,
        )
    if drawing.kind == 'cloud':
        return scene.add_point_cloud(
            name,
            drawing.points.astype(np.float32),
            colour,
            point_size=drawing.size,
            point_shape='circle',
            precision='float32',
        )
    if drawing.kind == 'arrow':
        return scene.add_arrows(
            name,
            drawing.points[None, :2].astype(np.float32),
            colour,
            shaft_radius=drawing.size / 2.0,
            head_radius=drawing.size,
            head_length=3.0 * drawing.size,
        )
    return scene.add_line_segments(name, _segments(drawing), colour, thickness=drawing.size)


def _segments(drawing: Drawing) -> NDArray[np.float32]:
    points = drawing.points.astype(np.float32)
    if drawing.kind == 'strip':
        return np.stack([points[:-1], points[1:]], axis=1)
    return points[: len(points) // 2 * 2].reshape(-1, 2, 3)
