"""Obstacles at run time that an arm avoids."""

import functools
import time

from geometry_msgs.msg import Point
from mher_ros.control.filter.joint_filter import JointFilter
from mher_ros.control.obstacle_tracker import ObstacleTracker
from mher_ros.options import OptionError
from mher_ros.robots.obstacle_slots import ObstacleSlots, SLOTS
from mher_ros.robots.robot import Robot
from mher_ros.robots.solids import Solid
from mher_ros.ros.common.arm_driver import ArmDriver
from mher_ros.ros.common.frames import Frames
from mher_ros.ros.common.geometry import set_quaternion, set_vector
from mher_ros.ros.common.obstacle_changes import Change, Shape
from mher_ros.ros.common.obstacle_input import ObstacleInput
from mher_ros.ros.common.raw_messages import SECOND, stamp_of
from mher_ros.view.drawings import Colour
from rclpy.node import Node
from scipy.spatial import ConvexHull
from visualization_msgs.msg import Marker

TYPES = {'box': Marker.CUBE, 'sphere': Marker.SPHERE, 'cylinder': Marker.CYLINDER}


class AvoidedObstacles:
    """
    Passes obstacles from topics to the filter and to the driver of an arm.

    The thread that calls this is the only one that changes the obstacles.
    """

    def __init__(
        self,
        node: Node,
        driver: ArmDriver,
        slots: ObstacleSlots,
        robot: Robot,
        frames: Frames,
        planning_scene: str = '',
    ) -> None:
        """``planning_scene``: topic of MoveIt's planning scene; empty: none."""
        safety_filter = driver.path.filter
        assert isinstance(safety_filter, JointFilter)
        safety_filter.avoid(slots)
        self.lock, self._clock, self._base = driver.lock, driver.clock, frames.base
        self._tracker = driver.obstacles = ObstacleTracker(slots, robot.collision)
        self._shapes: dict[str, Shape] = {}
        self._input = ObstacleInput(node, self, frames, planning_scene)
        self.figures = self._input.figures

    def now(self) -> float:
        return self._clock.now()

    def put(self, name: str, shape: Shape, change: Change, sent: int) -> str:
        now, stamp = self._clock.now(), stamp_of(change.header.stamp)
        age = time.monotonic_ns() - sent
        if stamp > 0:
            age = max(age, stamp_of(self._clock.stamp()) - stamp)
        if change.rests:
            self._tracker.forget(name)
        known_at = now - max(0, age) / SECOND
        wrong = self._tracker.put(name, shape.solid, known_at, now, change.moves)
        self._shapes[name] = shape
        return wrong

    def remove(self, name: str) -> None:
        self._tracker.remove(name, self._clock.now())
        self._shapes.pop(name, None)

    def lose(self, name: str, reason: str) -> None:
        self._tracker.lose(name, reason)

    def markers(self) -> list[Marker]:
        """Return the obstacles as markers in the base frame; free slots delete theirs."""
        found = [Marker(action=Marker.DELETE, type=Marker.CUBE) for _ in range(SLOTS)]
        for name, slot in self._tracker.slots.items():
            found[slot] = _marker(self._shapes[name])
        for slot, marker in enumerate(found):
            marker.ns, marker.id, marker.header.frame_id = 'obstacles', slot, self._base
        return found

    def close(self) -> None:
        """Close the topics."""
        self._input.close()


def check_planning_scene(topic: str, slots: ObstacleSlots | None) -> None:
    """Raise OptionError if obstacles of a planning scene are asked for, but cannot be avoided."""
    if topic and slots is None:
        raise OptionError(
            "planning_scene takes '' for an arm without collision avoidance, or whose output "
            'does not command joints'
        )


def _marker(shape: Shape) -> Marker:
    """Return a shape in the base frame as a marker."""
    marker = Marker(action=Marker.ADD, type=TYPES.get(shape.kind, Marker.TRIANGLE_LIST))
    set_vector(marker.pose.position, shape.pose[0])
    set_quaternion(marker.pose.orientation, shape.pose[1])
    colour, scale = marker.color, marker.scale
    colour.r, colour.g, colour.b, colour.a = Colour.OBSTACLE
    first, second, _ = shape.size
    scale.x, scale.y, scale.z = {
        'box': shape.size,
        'sphere': (2.0 * first,) * 3,
        'cylinder': (2.0 * first, 2.0 * first, second),
        'hull': (1.0, 1.0, 1.0),
    }[shape.kind]
    if shape.hull is not None:
        marker.points = _corners(shape.hull)
    return marker


@functools.lru_cache(maxsize=2 * SLOTS)
def _corners(hull: Solid) -> list[Point]:
    """Return the corners of the triangles of a hull, three for each."""
    corners = hull.vertices[ConvexHull(hull.vertices).simplices]
    return [Point(x=x, y=y, z=z) for x, y, z in corners.reshape(-1, 3).tolist()]
