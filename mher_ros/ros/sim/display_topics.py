"""What sim_node publishes for display: pose of the tool, clock, markers, URDF and TF."""

# ``clock`` and ``tf`` are relative names, unlike usual in ROS: in a namespace each simulation has
# a time and frames of its own.

import importlib.util
import math
import time
from typing import Any

from geometry_msgs.msg import PoseStamped, TransformStamped
from mher_ros.ros.common.geometry import set_quaternion, set_vector
from mher_ros.ros.common.markers import RobotMarkers
from mher_ros.ros.common.polled_topic import LATCHED
from mher_ros.ros.common.raw_messages import SECOND
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.shapes import visible_shapes
from mher_ros.simulation.urdf_writer import link_frames
from rclpy.node import Node
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

HAS_TF = importlib.util.find_spec('tf2_msgs') is not None  # the ROS wheels come without it
PUBLISHING = ('auto', 'always', 'never')  # auto: while no other node publishes the description
CHECK = 0.5  # time between two checks for other publishers of the robot description [s]


class DisplayTopics:
    """Publishes an arm for display; each topic only if it has a subscriber."""

    def __init__(
        self,
        node: Node,
        plant: Plant,
        name: str,
        description_topic: str,
        publish_description: str = 'auto',
        publish_frames: str = 'auto',
    ) -> None:
        """``publish_description`` and ``publish_frames``: one of ``PUBLISHING``."""
        self._plant = plant
        self._publish_description, self._publish_frames = publish_description, publish_frames
        self._poses = node.create_publisher(PoseStamped, 'tool_pose', 10)
        self._clock = node.create_publisher(Clock, 'clock', 10)
        shapes = visible_shapes(plant.model, plant.joint_names)
        self._robot = RobotMarkers(shapes, plant.frame)
        self._markers = node.create_publisher(MarkerArray, 'robot_markers', 1)
        self._description = _Description(node, plant.description(name), description_topic)
        self._frames = _Frames(node, plant) if HAS_TF else None
        self._checked = -math.inf
        self._choose_publishers()

    def publish_clock(self, stamp: int) -> Clock:
        """Publish the simulated time, ``stamp`` [ns]."""
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(stamp, SECOND)
        if self._clock.get_subscription_count():
            self._clock.publish(clock)
        return clock

    def publish(self, stamp: int) -> None:
        """Publish the arm at time ``stamp`` [ns]."""
        clock = self.publish_clock(stamp)
        if self._poses.get_subscription_count():
            self._poses.publish(self._tool_pose(clock.clock))
        if self._markers.get_subscription_count():
            self._markers.publish(self._robot.at(self._plant.data, clock.clock))
        self._choose_publishers()
        if self._frames is not None and self._has_frames:
            self._frames.publish(clock.clock)

    def _choose_publishers(self) -> None:
        """Leave description and TF to a robot_state_publisher, if there is one."""
        now = time.monotonic()
        if now - self._checked < CHECK:
            return
        self._checked = now
        chosen = {'auto': not self._description.others(), 'always': True, 'never': False}
        self._description.switch(chosen[self._publish_description])
        self._has_frames = chosen[self._publish_frames]

    def _tool_pose(self, stamp: Any) -> PoseStamped:
        message = PoseStamped()
        message.header.stamp, message.header.frame_id = stamp, self._plant.frame
        position, orientation = self._plant.tool_pose()
        set_vector(message.pose.position, position)
        set_quaternion(message.pose.orientation, orientation)
        return message


class _Description:
    """Publishes the arm's URDF, and can stop doing so."""

    def __init__(self, node: Node, text: str, topic: str) -> None:
        self._node, self._message = node, String(data=text)
        self._topic = node.resolve_topic_name(topic)
        self._publisher: Publisher | None = None

    def others(self) -> list[str]:
        # One of the same name is an earlier start of this node, which the graph still shows.
        own = self._node.get_name(), self._node.get_namespace()
        ends = self._node.get_publishers_info_by_topic(self._topic)
        return [end.node_name for end in ends if (end.node_name, end.node_namespace) != own]

    def switch(self, on: bool) -> None:
        if on and self._publisher is None:
            self._publisher = self._node.create_publisher(String, self._topic, LATCHED)
            self._publisher.publish(self._message)
        elif not on and self._publisher is not None:
            self._node.destroy_publisher(self._publisher)
            self._publisher = None
            others = ', '.join(self.others())
            self._node.get_logger().info(f'{self._topic} is left to {others}')


class _Frames:
    """Publishes the poses of the links on ``tf``, each in the arm's frame."""

    def __init__(self, node: Node, plant: Plant) -> None:
        from tf2_msgs.msg import TFMessage

        self._plant = plant
        self._frames = link_frames(plant.model, plant.joint_names, plant.frame)
        self._publisher = node.create_publisher(TFMessage, 'tf', 100)
        self._message = TFMessage()
        for link in self._frames.values():
            transform = TransformStamped(child_frame_id=link)
            transform.header.frame_id = plant.frame
            self._message.transforms.append(transform)

    def publish(self, stamp: Any) -> None:
        data = self._plant.data
        for body, stamped in zip(self._frames, self._message.transforms, strict=True):
            stamped.header.stamp = stamp
            set_vector(stamped.transform.translation, data.xpos[body])
            set_quaternion(stamped.transform.rotation, data.xquat[body])
        self._publisher.publish(self._message)
