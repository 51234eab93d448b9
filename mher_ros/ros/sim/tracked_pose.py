"""The measured pose of a simulated arm's tool on its topic, one for each joint state."""

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from mher_ros.robots.robot import Robot
from mher_ros.ros.common.polled_topic import RELIABLE_QUEUE
from mher_ros.ros.common.raw_messages import SECOND, ToolWriter
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.tracker import Tracker
import numpy as np
from rclpy.node import Node


class TrackedPose:
    """Publishes what a tracker measures, with the stamps of the joint states."""

    def __init__(self, node: Node, robot: Robot, tracker: Tracker) -> None:
        self._tracker, pose = tracker, robot.tool_pose
        self._publisher = node.create_publisher(PoseStamped, pose.topic, RELIABLE_QUEUE)
        message = PoseStamped()
        message.header.frame_id = pose.frame
        self._writer, self._latest = ToolWriter(message), b''

    def reset(self, seed: int | None) -> None:
        """Forget the measured poses, at the start of the episode of a seed."""
        self._tracker.reset(np.random.default_rng(seed))

    def measure(self, stamp: int, plant: Plant) -> None:
        """Measure the pose of the present state, stamped ``stamp`` [ns]."""
        self._tracker.measure(*plant.tool_pose())
        position, orientation = self._tracker.pose
        w, x, y, z = orientation.tolist()
        seconds, nanoseconds = divmod(stamp, SECOND)
        time = Time(sec=seconds, nanosec=nanoseconds)
        self._latest = self._writer.write(time, *position.tolist(), x, y, z, w)

    def publish(self) -> None:
        """Publish the latest measured pose."""
        self._publisher.publish(self._latest)
