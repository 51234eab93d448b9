"""What sim_node tells besides its joints: the tool's pose, the clock, what RViz draws."""

from __future__ import annotations

import importlib
from typing import Any, TYPE_CHECKING

from geometry_msgs.msg import PoseStamped, TransformStamped
from mher_ros.ros.inbox import LATCHED
from mher_ros.ros.markers import RobotMarkers
from mher_ros.ros.wire import SECOND
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.shapes import robot_bodies, visible_shapes
from mher_ros.simulation.urdf import link_name
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

if TYPE_CHECKING:
    from mher_ros.ros.sim_window import SimWindow

__all__ = ['SimView']


class SimView:
    """Publishes the arm as people and their tools look at it."""

    def __init__(
        self, node: Node, plant: Plant, name: str, description_topic: str, viewer: bool
    ) -> None:
        """Show ``plant`` under ``name``; ``viewer`` opens MuJoCo's own window, too."""
        self._plant = plant
        self._poses = node.create_publisher(PoseStamped, 'tool_pose', 10)
        self._clock = node.create_publisher(Clock, '/clock', 10)
        shapes = visible_shapes(plant.model, plant.joint_names)
        self._robot = RobotMarkers(shapes, plant.frame)
        self._markers = node.create_publisher(MarkerArray, 'robot_markers', 1)
        self._description = node.create_publisher(String, description_topic, LATCHED)
        self._description.publish(String(data=plant.description(name)))
        self._frames = _Frames(node, plant) if _has_tf() else None
        self._window: SimWindow | None = None
        if viewer:
            # What it imports needs a screen.
            from mher_ros.ros.sim_window import SimWindow

            self._window = SimWindow(plant)

    def show(self, stamp: int) -> None:
        """Publish the arm as it is at ``stamp`` [ns]."""
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(stamp, SECOND)
        self._clock.publish(clock)
        if self._poses.get_subscription_count():
            self._poses.publish(self._tool_pose(clock.clock))
        if self._markers.get_subscription_count():
            self._markers.publish(self._robot.at(self._plant.data, clock.clock))
        if self._frames is not None:
            self._frames.publish(clock.clock)
        if self._window is not None:
            self._window.show()

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()

    def _tool_pose(self, stamp: Any) -> PoseStamped:
        message = PoseStamped()
        message.header.stamp, message.header.frame_id = stamp, self._plant.frame
        place, turn = message.pose.position, message.pose.orientation
        position, orientation = self._plant.tool_pose()
        place.x, place.y, place.z = position.tolist()
        turn.w, turn.x, turn.y, turn.z = orientation.tolist()
        return message


class _Frames:
    """The links' poses on /tf, each in the arm's frame."""

    def __init__(self, node: Node, plant: Plant) -> None:
        from tf2_msgs.msg import TFMessage

        self._plant = plant
        self._bodies = robot_bodies(plant.model, plant.joint_names)[1:]
        self._publisher = node.create_publisher(TFMessage, '/tf', 100)
        self._message = TFMessage()
        for body in self._bodies:
            transform = TransformStamped(child_frame_id=link_name(plant.model, body))
            transform.header.frame_id = plant.frame
            self._message.transforms.append(transform)

    def publish(self, stamp: Any) -> None:
        data = self._plant.data
        for body, stamped in zip(self._bodies, self._message.transforms, strict=True):
            stamped.header.stamp = stamp
            place, turn = stamped.transform.translation, stamped.transform.rotation
            place.x, place.y, place.z = data.xpos[body].tolist()
            turn.w, turn.x, turn.y, turn.z = data.xquat[body].tolist()
        self._publisher.publish(self._message)


def _has_tf() -> bool:
    """Return whether tf2_msgs is there; the ROS wheels come without it."""
    try:
        importlib.import_module('tf2_msgs.msg')
    except ImportError:
        return False
    return True
