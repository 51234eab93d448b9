"""What sim_node publishes besides its joints: the tool's pose, the clock, what RViz draws."""

from __future__ import annotations

import importlib
import math
import time
from typing import Any, TYPE_CHECKING

from geometry_msgs.msg import PoseStamped, TransformStamped
from mher_ros.ros.inbox import LATCHED
from mher_ros.ros.markers import RobotMarkers
from mher_ros.ros.sim_options import SimOptions
from mher_ros.ros.wire import SECOND
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.shapes import robot_bodies, visible_shapes
from mher_ros.simulation.urdf import link_name
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

if TYPE_CHECKING:
    from mher_ros.ros.sim_window import SimWindow

__all__ = ['SimView']

LOOK = 0.5
"""Time between two looks at who else publishes the arm's description [s]."""


class SimView:
    """Publishes the arm as people and their tools look at it."""

    def __init__(
        self, node: Node, plant: Plant, name: str, description_topic: str, options: SimOptions
    ) -> None:
        """Show ``plant`` under ``name``, as ``options`` say."""
        self._plant, self._options = plant, options
        self._poses = node.create_publisher(PoseStamped, 'tool_pose', 10)
        self._clock = node.create_publisher(Clock, '/clock', 10)
        shapes = visible_shapes(plant.model, plant.joint_names)
        self._robot = RobotMarkers(shapes, plant.frame)
        self._markers = node.create_publisher(MarkerArray, 'robot_markers', 1)
        self._description = _Description(node, plant.description(name), description_topic)
        self._frames = _Frames(node, plant) if _has_tf() else None
        self._look = -math.inf
        self._choose_publishers()
        self._window: SimWindow | None = None
        if options.viewer:
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
        self._choose_publishers()
        if self._frames is not None and self._has_frames:
            self._frames.publish(clock.clock)
        if self._window is not None:
            self._window.show()

    def close(self) -> None:
        """Close the window."""
        if self._window is not None:
            self._window.close()

    def _choose_publishers(self) -> None:
        """Leave description and links to a robot_state_publisher, if there is one now."""
        now = time.monotonic()
        if now - self._look < LOOK:
            return
        self._look = now
        is_alone = not self._description.others()
        chosen = {'auto': is_alone, 'always': True, 'never': False}
        self._description.switch(chosen[self._options.publish_robot_description])
        self._has_frames = chosen[self._options.publish_tf]

    def _tool_pose(self, stamp: Any) -> PoseStamped:
        message = PoseStamped()
        message.header.stamp, message.header.frame_id = stamp, self._plant.frame
        place, turn = message.pose.position, message.pose.orientation
        position, orientation = self._plant.tool_pose()
        place.x, place.y, place.z = position.tolist()
        turn.w, turn.x, turn.y, turn.z = orientation.tolist()
        return message


class _Description:
    """The arm's URDF on its topic, which can be withdrawn."""

    def __init__(self, node: Node, text: str, topic: str) -> None:
        self._node, self._message = node, String(data=text)
        self._topic = node.resolve_topic_name(topic)
        self._publisher: Publisher | None = None

    def others(self) -> list[str]:
        """Return the names of other nodes that publish it."""
        # One of the same name is an earlier life of this one, which the graph still shows.
        own = self._node.get_name(), self._node.get_namespace()
        found = self._node.get_publishers_info_by_topic(self._topic)
        ends = [(end.node_name, end.node_namespace) for end in found]
        return [name for name, namespace in ends if (name, namespace) != own]

    def switch(self, on: bool) -> None:
        """Publish it, or withdraw it."""
        if on and self._publisher is None:
            self._publisher = self._node.create_publisher(String, self._topic, LATCHED)
            self._publisher.publish(self._message)
        elif not on and self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
            others = ', '.join(self.others())
            self._node.get_logger().info(f'{self._topic} is left to {others}')


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
