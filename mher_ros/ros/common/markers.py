"""Markers for RViz, without TF, and for the page: arm, goal, workspace, path of the tool."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
import threading
from typing import Any

from geometry_msgs.msg import Point
from mher_ros.interface import TaskInterface, Vector
from mher_ros.robots.scene import Vector3
from mher_ros.robots.solids import shape_solid
from mher_ros.robots.surfaces import triangles_of
from mher_ros.ros.common.geometry import numbers_of, set_quaternion, set_vector
from mher_ros.ros.common.status import DeploymentStatus
from mher_ros.simulation.shapes import Shape, Shapes
from mher_ros.tasks.task import Observation
from mher_ros.view.drawings import box_edges, Colour, Drawing, LEAST_POINTS
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

SHAPES = {
    'box': Marker.CUBE,
    'cylinder': Marker.CYLINDER,
    'mesh': Marker.MESH_RESOURCE,
    'sphere': Marker.SPHERE,
}
KINDS = {
    'ball': (Marker.SPHERE, (2.0, 2.0, 2.0)),
    'lines': (Marker.LINE_LIST, (1.0, 0.0, 0.0)),
    'strip': (Marker.LINE_STRIP, (1.0, 0.0, 0.0)),
    'arrow': (Marker.ARROW, (1.0, 2.0, 3.0)),
    'cloud': (Marker.POINTS, (1.0, 1.0, 0.0)),
    'surface': (Marker.TRIANGLE_LIST, (1.0, 1.0, 1.0)),
}
"""Type of the marker for each kind of drawing, and its scale in sizes of the drawing."""
DRAWN = {kind: name for name, (kind, _) in KINDS.items()}
SOLIDS = {Marker.CUBE: 'box', Marker.CYLINDER: 'cylinder'}
"""Markers that are drawn as surfaces."""
LINE_WIDTH = 0.01  # of the longest side of the workspace
MAX_VIRTUAL = 256  # virtual goals shown of a batch
STILL = 1e-3  # speed below which no motion is shown [m/s]
RATE = 10.0  # messages per second, if there is a subscriber
TRAIL = 200  # positions of the tool that its trail shows
MOVED = 1e-3  # distance from the last position of the trail from which one is added [m]


@dataclasses.dataclass(frozen=True)
class Motion:
    """The current motion of an arm, in its base frame."""

    tool: Vector | None = None  # where the tool is (3,) [m], if known
    velocity: Vector | None = None  # commanded, or would be if commands were sent (3,) [m/s]
    goal: Vector | None = None  # where it is to go (3,) [m], if anywhere
    reached: bool = False


class _MarkerPublisher:
    def __init__(self, node: Node, publish: Callable[[], None]) -> None:
        self._node = node
        self._trail: deque[Vector] = deque(maxlen=TRAIL)
        self._publisher = node.create_publisher(MarkerArray, '~/markers', 1)
        self._timer = node.create_timer(1.0 / RATE, publish)


class TrainMarkers(_MarkerPublisher):
    """Publishes goal, workspace, path of the tool in the current episode, and virtual goals."""

    def __init__(
        self, node: Node, interface: TaskInterface, others: Callable[[], list[Marker]] = list
    ) -> None:
        """Show the task, and what ``others`` returns."""
        super().__init__(node, self._publish)
        self._interface, self._others = interface, others
        self._lock = threading.Lock()
        self._goal: Vector | None = None
        # Returns the offsets of the last batch (k, m); called if there is a subscriber.
        self.goal_offsets: Callable[[], NDArray[np.float32] | None] = lambda: None

    def take(self, observation: Observation, first: bool) -> None:
        """Take an observation; ``first``: of an episode."""
        with self._lock:
            if first:
                self._trail.clear()
                self._goal = observation['desired_goal']
            self._trail.append(observation['achieved_goal'])

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            return
        with self._lock:
            goal, trail = self._goal, list(self._trail)
        if goal is not None:
            made = self.goal_offsets()
            array = training_markers(self._interface, goal, trail, made)
            array.markers += self._others()
            self._publisher.publish(array)


class DeployMarkers(_MarkerPublisher):
    """Publishes goal, workspace, the tool's box, its commanded velocity and its past path."""

    def __init__(
        self,
        node: Node,
        status: DeploymentStatus,
        motion: Callable[[], Motion],
        others: Callable[[], list[Marker]] = list,
    ) -> None:
        """Show what ``motion`` and ``others`` return, and the boxes of ``status``."""
        super().__init__(node, self._publish)
        self._status, self._motion, self._others = status, motion, others

    def begin_trail(self) -> None:
        """Clear the path of the tool; any thread may call it."""
        self._trail.clear()

    def close(self) -> None:
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            self._trail.clear()  # a line would connect it with later positions
            return
        motion, trail = self._motion(), list(self._trail)
        tool = motion.tool
        # While the arm rests at its goal, its path remains visible.
        if tool is not None and (not trail or np.linalg.norm(tool - trail[-1]) > MOVED):
            self._trail.append(tool.copy())
        array = deployment_markers(self._status, motion, list(self._trail))
        array.markers += self._others()
        self._publisher.publish(array)


class RobotMarkers:
    """The markers of one arm; made once, since only their poses change."""

    def __init__(self, shapes: Shapes, frame: str) -> None:
        self._shapes = shapes
        self._array = MarkerArray(
            markers=[_shape_marker(frame, index, shape) for index, shape in enumerate(shapes)]
        )

    def at(self, data: mujoco.MjData, stamp: Any = None) -> MarkerArray:
        """Return the markers for ``data``; each call returns, and changes, the same message."""
        poses = zip(*self._shapes.poses(data), strict=True)
        for marker, (position, orientation) in zip(self._array.markers, poses, strict=True):
            set_vector(marker.pose.position, position)
            set_quaternion(marker.pose.orientation, orientation)
            if stamp is not None:
                marker.header.stamp = stamp
        return self._array


def training_markers(
    interface: TaskInterface,
    goal: ArrayLike,
    trail: Sequence[ArrayLike],
    goal_offsets: NDArray[np.float32] | None = None,
) -> MarkerArray:
    """
    Return markers of a goal (m,), the box of goals, and past tool positions, ``trail``.

    The radius of the goal's ball is the success threshold. Goals of two entries are at height 0.
    Virtual goals are given by their offsets (k, m) from the goals that they replace; the first 256
    are shown as points around this goal.
    """
    low, high = np.array(interface.position_box)
    width, near = LINE_WIDTH * float(np.max(high - low)), interface.success_threshold
    made: Iterable[ArrayLike] = ()
    if goal_offsets is not None:
        made = np.asarray(goal) + goal_offsets[:MAX_VIRTUAL]
    drawn = (
        ('goal', 0, 'ball', [goal], Colour.GOAL, near),
        ('goal', 1, 'ball', [goal], Colour.GOAL_CENTRE, near / 5),
        ('workspace', 0, 'lines', box_edges(low, high), Colour.WORKSPACE, width / 2),
        ('trail', 0, 'strip', trail, Colour.TRAIL, width),
        ('virtual_goals', 0, 'cloud', made, Colour.VIRTUAL, near / 3),
    )
    return MarkerArray(markers=[drawn_marker(interface.frame, *one) for one in drawn])


def deployment_markers(
    status: DeploymentStatus, motion: Motion, trail: Sequence[ArrayLike] = ()
) -> MarkerArray:
    """
    Return markers of a deployed policy, with frame, threshold, workspace and box of ``status``.

    The goal is a ball whose radius is the threshold; it is green when reached. Goals are accepted
    in the workspace, and the tool stays in the box. An arrow shows the displacement of the tool in
    one second; ``trail`` are its past positions (3,) [m]. None is not shown.
    """
    threshold, workspace, box = status.threshold, status.workspace, status.box
    assert threshold is not None and workspace is not None
    low, high = box or workspace
    width = LINE_WIDTH * float(np.max(np.subtract(high, low)))
    start, velocity = motion.tool, motion.velocity
    arrow: list[ArrayLike] = []
    if start is not None and velocity is not None and np.linalg.norm(velocity) >= STILL:
        arrow = [start, np.add(start, velocity)]
    goal = [] if motion.goal is None else [motion.goal]
    edges: ArrayLike = box_edges(*box) if box else []
    colour = Colour.REACHED if motion.reached else Colour.AHEAD
    drawn = (
        ('goal', 0, 'ball', goal, colour, threshold),
        ('workspace', 0, 'lines', box_edges(*workspace), Colour.WORKSPACE, width / 2),
        ('box', 0, 'lines', edges, Colour.BOX, width / 2),
        ('motion', 0, 'arrow', arrow, Colour.MOTION, width),
        ('trail', 0, 'strip', trail, Colour.TRAIL, width / 2),
    )
    return MarkerArray(markers=[drawn_marker(status.frame, *one) for one in drawn])


def drawings_of(array: MarkerArray) -> dict[str, Drawing | None]:
    """Return the drawings of the page by name; None: to be removed."""
    return {f'{marker.ns}_{marker.id}': _drawing(marker) for marker in array.markers}


def bare_marker(
    frame: str, namespace: str, index: int, kind: int, rgba: Sequence[float]
) -> Marker:
    """Return a marker without a shape."""
    marker = Marker(ns=namespace, id=index, type=kind, action=Marker.ADD)
    marker.header.frame_id = frame
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = rgba
    return marker


def drawn_marker(
    frame: str,
    namespace: str,
    index: int,
    kind: str,
    points: Iterable[ArrayLike],
    rgba: Sequence[float],
    size: float,
) -> Marker:
    """Return a drawing as a marker, which deletes it if there are too few points."""
    number, scale = KINDS[kind]
    marker = bare_marker(frame, namespace, index, number, rgba)
    marker.scale.x, marker.scale.y, marker.scale.z = (size * part for part in scale)
    padded = [(*np.asarray(point, np.float64).tolist(), 0.0)[:3] for point in points]
    found = [Point(x=x, y=y, z=z) for x, y, z in padded]
    if len(found) < LEAST_POINTS[kind]:
        marker.action = Marker.DELETE
    elif kind == 'ball':
        (marker.pose.position,) = found
    else:
        marker.points = found
    return marker


def _shape_marker(frame: str, index: int, shape: Shape) -> Marker:
    marker = bare_marker(frame, 'robot', index, SHAPES[shape.kind], shape.rgba)
    marker.scale.x, marker.scale.y, marker.scale.z = shape.size
    if shape.mesh is not None:
        marker.mesh_resource = shape.mesh.as_uri()
    return marker


def _drawing(marker: Marker) -> Drawing | None:
    kind = 'surface' if marker.type in SOLIDS else DRAWN.get(marker.type)
    pose = tuple(numbers_of(marker.pose.position, marker.pose.orientation))
    scale = tuple(numbers_of(marker.scale))
    colour = marker.color
    red, green, blue, opacity = np.clip((colour.r, colour.g, colour.b, colour.a), 0.0, 1.0)
    rgba = (float(red), float(green), float(blue), float(opacity))
    if (
        kind is None
        or marker.action != Marker.ADD
        or not np.isfinite([*pose, *scale, *rgba]).all()
    ):
        return None
    if marker.type in SOLIDS:
        return Drawing(kind, _surface(SOLIDS[marker.type], scale), rgba, pose=pose)
    places = [marker.pose.position] if kind == 'ball' else marker.points
    points = np.array([numbers_of(place) for place in places], np.float64).reshape(-1, 3)
    # An obstacle with unequal diameters counts as a ball of the largest one.
    size = (max(scale) if kind == 'ball' else scale[0]) / KINDS[kind][1][0]
    if not np.isfinite(points).all() or size <= 0.0:
        return None
    if kind == 'surface':
        return Drawing(kind, points[: len(points) // 3 * 3], rgba, pose=pose)
    return Drawing(kind, points, rgba, size)


@functools.lru_cache(maxsize=64)
def _surface(shape: str, scale: Vector3) -> Vector:
    """Return the triangles of a box or cylinder of this scale, as the safety filter has it."""
    wide, deep, high = scale
    size = scale if shape == 'box' else (max(wide, deep) / 2.0, high, 0.0)
    return triangles_of(shape_solid(shape, size))
