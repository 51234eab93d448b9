"""Markers, as RViz takes them, as drawings on the page."""

from __future__ import annotations

from collections.abc import Iterable

from mher_ros.view.drawings import Drawing
import numpy as np
from numpy.typing import NDArray
from visualization_msgs.msg import Marker, MarkerArray

__all__ = ['drawings_of', 'extent_of', 'frame_of', 'place_of']

KINDS = {
    Marker.SPHERE: 'ball',
    Marker.LINE_LIST: 'lines',
    Marker.LINE_STRIP: 'strip',
    Marker.ARROW: 'arrow',
    Marker.POINTS: 'cloud',
}


def drawings_of(array: MarkerArray) -> dict[str, Drawing | None]:
    """Return what to draw by name, and None for what is to be taken away."""
    return {f'{marker.ns}_{marker.id}': _drawing(marker) for marker in array.markers}


def frame_of(array: MarkerArray) -> str:
    """Return the frame of the markers; empty if there are none."""
    return str(array.markers[0].header.frame_id) if array.markers else ''


def place_of(array: MarkerArray, namespace: str) -> NDArray[np.float64] | None:
    """Return where the first marker of a namespace is (3,) [m]; None if it is not shown."""
    for marker in _shown(array, namespace):
        place = np.array([marker.pose.position.x, marker.pose.position.y, marker.pose.position.z])
        return place if np.isfinite(place).all() else None
    return None


def extent_of(
    array: MarkerArray, namespace: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the low and high corner (3,) [m] of the lines of a namespace; None: no lines."""
    for marker in _shown(array, namespace):
        points = _points(marker)
        if len(points) and np.isfinite(points).all():
            return points.min(0), points.max(0)
    return None


def _shown(array: MarkerArray, namespace: str) -> Iterable[Marker]:
    return (
        marker
        for marker in array.markers
        if marker.ns == namespace and marker.action == Marker.ADD
    )


def _drawing(marker: Marker) -> Drawing | None:
    kind = KINDS.get(marker.type)
    if kind is None or marker.action != Marker.ADD:
        return None
    colour, place, scale = marker.color, marker.pose.position, marker.scale
    is_ball = kind == 'ball'
    points = np.array([[place.x, place.y, place.z]]) if is_ball else _points(marker)
    red, green, blue, opacity = np.clip((colour.r, colour.g, colour.b, colour.a), 0.0, 1.0)
    rgba = (float(red), float(green), float(blue), float(opacity))
    size = scale.x / 2.0 if is_ball else scale.x
    if not np.isfinite(points).all() or not np.isfinite([*rgba, size]).all() or size <= 0.0:
        return None
    return Drawing(kind, points, rgba, size)


def _points(marker: Marker) -> NDArray[np.float64]:
    points = np.array([(point.x, point.y, point.z) for point in marker.points], np.float64)
    return points.reshape(-1, 3)
