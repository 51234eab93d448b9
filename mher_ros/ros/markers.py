"""What RViz draws without TF: the arm, the goal, the workspace and the way of the tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from geometry_msgs.msg import Point
from mher_ros.interface import TaskInterface
from mher_ros.simulation.shapes import Shape, Shapes
from mher_ros.view import palette
from mher_ros.view.edges import box_edges
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray
from visualization_msgs.msg import Marker, MarkerArray

__all__ = ['RobotMarkers', 'deployment_markers', 'training_markers']

TYPES = {
    'box': Marker.CUBE,
    'cylinder': Marker.CYLINDER,
    'mesh': Marker.MESH_RESOURCE,
    'sphere': Marker.SPHERE,
}
LINE_WIDTH = 0.01
"""Of the longest side of the workspace."""
MOST_VIRTUAL = 256
"""Virtual goals shown of a batch."""
STILL = 1e-3
"""Speed below which no motion is shown [m/s]."""


class RobotMarkers:
    """The shapes of one arm; made once, since only their poses change."""

    def __init__(self, shapes: Shapes, frame: str) -> None:
        self._shapes = shapes
        self._array = MarkerArray(
            markers=[_shape_marker(frame, index, shape) for index, shape in enumerate(shapes)]
        )
        self._poses = [(m.pose.position, m.pose.orientation) for m in self._array.markers]

    def at(self, data: mujoco.MjData, stamp: Any = None) -> MarkerArray:
        """
        Return the arm as ``data`` has it, under a ``builtin_interfaces/Time`` or under none.

        The message is the same one each time: publish it before asking again.
        """
        positions, orientations = self._shapes.poses(data)
        for (place, turn), position, orientation in zip(
            self._poses, positions.tolist(), orientations.tolist(), strict=True
        ):
            place.x, place.y, place.z = position
            turn.w, turn.x, turn.y, turn.z = orientation
        if stamp is not None:
            for marker in self._array.markers:
                marker.header.stamp = stamp
        return self._array


def training_markers(
    interface: TaskInterface,
    goal: ArrayLike,
    trail: Sequence[ArrayLike],
    stamp: Any = None,
    virtual_offsets: NDArray[np.float32] | None = None,
) -> MarkerArray:
    """
    Show a goal (m,), the box that goals are drawn from, and a trail of tool positions.

    The goal's ball has the size of success. Goals of two entries lie at height zero. Virtual
    goals, by their offsets (k, m) from the goals that they replace, are shown around this one as
    points, the first 256.
    """
    low, high = np.array(interface.goal_low), np.array(interface.goal_high)
    width = LINE_WIDTH * float(np.max(high - low))
    (centre,) = _points([goal])
    markers = [
        _ball(interface.frame, 0, centre, interface.success_threshold, palette.GOAL),
        _ball(interface.frame, 1, centre, interface.success_threshold / 5, palette.GOAL_CENTRE),
        _lines(interface.frame, 'workspace', Marker.LINE_LIST, width / 2, palette.WORKSPACE),
        _trail(interface.frame, width, trail),
        _cloud(interface.frame, interface.success_threshold / 3, goal, virtual_offsets),
    ]
    markers[2].points = _points(box_edges(low, high))
    if stamp is not None:
        for marker in markers:
            marker.header.stamp = stamp
    return MarkerArray(markers=markers)


def deployment_markers(
    frame: str,
    threshold: float,
    workspace: tuple[ArrayLike, ArrayLike],
    box: tuple[ArrayLike, ArrayLike],
    *,
    goal: ArrayLike | None,
    reached: bool,
    tool: ArrayLike | None,
    velocity: ArrayLike | None,
    trail: Sequence[ArrayLike] = (),
) -> MarkerArray:
    """
    Show what a deployed policy is about to do.

    The goal (3,) is a ball with the size of success, ``threshold`` [m], and turns green when
    reached. Of both boxes, given by their low and high corners (3,) [m], goals are taken from the
    workspace, and the tool stays inside the other. An arrow from the tool (3,) [m] ends where
    ``velocity`` (3,) [m/s] would take it in a second; ``trail`` are positions (3,) [m] where it
    has been. What is None is not shown.
    """
    low, high = (np.asarray(corner, np.float64) for corner in box)
    width = LINE_WIDTH * float(np.max(high - low))
    ball = _ball(frame, 0, Point(), threshold, palette.REACHED if reached else palette.AHEAD)
    if goal is None:
        ball.action = Marker.DELETE
    else:
        (ball.pose.position,) = _points([goal])
    markers = [
        ball,
        _lines(frame, 'workspace', Marker.LINE_LIST, width / 2, palette.WORKSPACE),
        _lines(frame, 'box', Marker.LINE_LIST, width / 2, palette.BOX),
        _arrow(frame, 'motion', width, tool, velocity),
        _trail(frame, width / 2, trail),
    ]
    markers[1].points = _points(box_edges(*workspace))
    markers[2].points = _points(box_edges(low, high))
    return MarkerArray(markers=markers)


def _shape_marker(frame: str, index: int, shape: Shape) -> Marker:
    marker = _marker(frame, 'robot', index, TYPES[shape.kind], shape.rgba)
    marker.scale.x, marker.scale.y, marker.scale.z = shape.size
    if shape.mesh is not None:
        marker.mesh_resource = shape.mesh.as_uri()
    return marker


def _ball(frame: str, index: int, centre: Point, radius: float, rgba: Sequence[float]) -> Marker:
    marker = _marker(frame, 'goal', index, Marker.SPHERE, rgba)
    marker.pose.position = centre
    marker.scale.x = marker.scale.y = marker.scale.z = 2.0 * radius
    return marker


def _lines(frame: str, name: str, kind: int, width: float, rgba: Sequence[float]) -> Marker:
    marker = _marker(frame, name, 0, kind, rgba)
    marker.scale.x = width
    return marker


def _trail(frame: str, width: float, positions: Sequence[ArrayLike]) -> Marker:
    marker = _lines(frame, 'trail', Marker.LINE_STRIP, width, palette.TRAIL)
    if len(positions) > 1:
        marker.points = _points(positions)
    else:
        marker.action = Marker.DELETE
    return marker


def _cloud(
    frame: str, size: float, centre: ArrayLike, offsets: NDArray[np.float32] | None
) -> Marker:
    marker = _marker(frame, 'virtual_goals', 0, Marker.POINTS, palette.VIRTUAL)
    marker.scale.x = marker.scale.y = size
    if offsets is None or len(offsets) == 0:
        marker.action = Marker.DELETE
    else:
        marker.points = _points(np.asarray(centre) + offsets[:MOST_VIRTUAL])
    return marker


def _arrow(
    frame: str, name: str, width: float, start: ArrayLike | None, way: ArrayLike | None
) -> Marker:
    marker = _marker(frame, name, 0, Marker.ARROW, palette.MOTION)
    marker.scale.x, marker.scale.y, marker.scale.z = width, 2.0 * width, 3.0 * width
    if start is None or way is None or np.linalg.norm(way) < STILL:
        marker.action = Marker.DELETE
    else:
        marker.points = _points([start, np.add(start, way)])
    return marker


def _marker(frame: str, namespace: str, index: int, kind: int, rgba: Sequence[float]) -> Marker:
    marker = Marker(ns=namespace, id=index, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = rgba
    return marker


def _points(positions: Iterable[ArrayLike]) -> list[Point]:
    points = []
    for position in positions:
        x, y, z = (*np.asarray(position, np.float64).tolist(), 0.0)[:3]
        points.append(Point(x=x, y=y, z=z))
    return points
