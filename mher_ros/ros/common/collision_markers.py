"""Markers of what the safety filter keeps apart: parts of the arm, obstacles and their gaps."""

from collections.abc import Callable, Mapping, Sequence

from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import Part
from mher_ros.robots.collision_view import CollisionView, Gap
from mher_ros.robots.surfaces import triangles_of
from mher_ros.ros.common.geometry import set_quaternion, set_vector
from mher_ros.ros.common.markers import bare_marker, drawn_marker
from mher_ros.view.drawings import Colour
from mher_ros.view.obstacle_drawings import obstacle_drawings
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

COLLISION_MARKERS = 'collision_markers'
RATE = 5.0  # messages per second, if there is a subscriber
LASTS = Duration(sec=2)  # for which RViz shows a marker that is no longer published
LINE_WIDTH, TEXT_HEIGHT = 0.004, 0.03  # of gaps [m]


class CollisionMarkers:
    """
    Publishes the collision shapes of an arm where it is measured, if there is a subscriber.

    Shapes that are near to others have another colour. Lines are the gaps between them, and a
    text names the one with the least room.
    """

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        positions: Callable[[], Vector],
        obstacles: Callable[[], Mapping[int, Part]] = dict,
    ) -> None:
        """
        ``positions`` returns those of the joints (n,), or an empty array: they are not known.

        ``obstacles`` returns those at run time, by their slots.
        """
        self._node, self._arm = node, arm
        self._positions, self._obstacles = positions, obstacles
        # Not later: this takes some tenths of a second, in which commands could be late.
        self._view = CollisionView(arm)
        self._markers = [_part_marker(arm.base_frame, *one) for one in enumerate(self._view.parts)]
        self._publisher = node.create_publisher(MarkerArray, f'~/{COLLISION_MARKERS}', 1)
        self._timer = node.create_timer(1.0 / RATE, self._publish)

    def close(self) -> None:
        """Close the topic."""
        self._node.destroy_timer(self._timer)
        self._node.destroy_publisher(self._publisher)

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            return
        positions = self._positions()
        if not positions.size:
            return
        self._view.take(self._obstacles())
        self._publisher.publish(self._at(positions))

    def _at(self, positions: Vector) -> MarkerArray:
        view = self._view
        gaps = view.gaps(positions)
        near = {part for gap in gaps if gap.is_near for part in gap.parts}
        held = {part for gap in gaps if gap.is_held for part in gap.parts}
        poses = zip(view.parts, self._markers, *view.poses(positions), strict=True)
        for part, marker, position, orientation in poses:
            set_vector(marker.pose.position, position)
            set_quaternion(marker.pose.orientation, orientation)
            _paint(marker, part in held, part in near)
        near_gaps = [gap for gap in gaps if gap.is_near or gap.is_held]
        return MarkerArray(markers=self._markers + _gap_markers(self._arm.base_frame, near_gaps))


def scene_markers(arm: ArmModel) -> list[Marker]:
    """Return the obstacles of the robot file."""
    return [
        drawn_marker(arm.base_frame, 'scene', index, one.kind, one.points, one.rgba, one.size)
        for index, one in enumerate(obstacle_drawings(arm.scene))
    ]


def _part_marker(frame: str, index: int, part: Part) -> Marker:
    triangles = triangles_of(part.solid)
    marker = drawn_marker(frame, 'arm', index, 'surface', triangles, Colour.PART, 1.0)
    marker.lifetime = LASTS
    return marker


def _paint(marker: Marker, is_held: bool, is_near: bool) -> None:
    rgba = Colour.HELD if is_held else Colour.NEAR if is_near else Colour.PART
    marker.color.r, marker.color.g, marker.color.b, marker.color.a = rgba


def _gap_markers(frame: str, gaps: Sequence[Gap]) -> list[Marker]:
    """Return lines of gaps, and the text of the first one; no gaps delete them."""
    line = bare_marker(frame, 'nearest', 0, Marker.LINE_LIST, Colour.NEAR)
    text = bare_marker(frame, 'nearest', 1, Marker.TEXT_VIEW_FACING, Colour.TEXT)
    line.lifetime = text.lifetime = LASTS
    if not gaps:
        line.action = text.action = Marker.DELETE
        return [line, text]
    first = gaps[0]
    _paint(line, first.is_held, True)
    line.scale.x = LINE_WIDTH
    line.points = [Point(x=x, y=y, z=z) for gap in gaps for x, y, z in gap.ends.tolist()]
    set_vector(text.pose.position, first.ends.mean(axis=0))
    text.pose.position.z += TEXT_HEIGHT
    text.scale.x = text.scale.y = text.scale.z = TEXT_HEIGHT
    one, other = first.parts
    text.text = f'{one.name} - {other.name}: {first.distance:.3f} m'
    return [line, text]
