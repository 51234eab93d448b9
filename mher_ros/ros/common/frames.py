"""Transforms positions from other frames to the arm's base frame."""

import importlib
from typing import Any

from mher_ros.interface import Vector
from mher_ros.robots.workspace import GoalError, Refusal
from mher_ros.ros.common.geometry import numbers_of
from mher_ros.ros.common.raw_messages import SECOND, stamp_of
import mujoco
import numpy as np
from rclpy.node import Node
from rclpy.time import Time


class NotYetError(GoalError):
    """A stamp newer than the newest transform: the transform may still come."""


class Frames:
    """Poses of frames in the base frame, from tf2; the base frame itself needs no tf2."""

    def __init__(self, node: Node, base: str) -> None:
        self.base = base
        self._tf = _optional('tf2_ros')
        if self._tf is not None:
            self._buffer = self._tf.Buffer()
            self._listener = self._tf.TransformListener(self._buffer, node)

    def placement(self, header: Any) -> tuple[Vector, Vector]:
        """
        Return the pose of a ``std_msgs/Header``'s frame in the base frame at its stamp.

        The result is a rotation (3, 3) and a translation (3,) [m]: a point p of the frame is at
        ``rotation @ p + translation``. A stamp of 0 means the newest transform, as in tf2.
        NotYetError: the transform may still be received; another GoalError: there is none.
        """
        frame = header.frame_id
        if frame in ('', self.base):
            return np.eye(3), np.zeros(3)
        if self._tf is None:
            raise GoalError(
                f'frame {self.base!r} is expected where tf2_ros is not installed, got {frame!r}',
                Refusal.FRAME_UNKNOWN,
            )
        stamp = stamp_of(header.stamp)
        if stamp < 0:
            raise GoalError(
                f'a stamp of 0 or more is expected, got {stamp / SECOND:.3f} s',
                Refusal.BAD_MESSAGE,
            )
        try:
            found = self._buffer.lookup_transform(self.base, frame, Time(nanoseconds=stamp))
        except self._tf.TransformException as error:
            self._check_newest(frame, stamp)
            raise GoalError(
                f'a frame and a stamp that tf2 can place in {self.base!r} are expected, '
                f'got {frame!r} at {stamp / SECOND:.3f} s: {error}',
                Refusal.FRAME_UNKNOWN,
            ) from error
        *translation, w, x, y, z = numbers_of(
            found.transform.translation, found.transform.rotation
        )
        rotation = np.empty(9)
        mujoco.mju_quat2Mat(rotation, [w, x, y, z])
        return rotation.reshape(3, 3), np.array(translation)

    def close(self) -> None:
        if self._tf is not None:
            self._listener.unregister()

    def _check_newest(self, frame: str, stamp: int) -> None:
        """Raise NotYetError if a stamp [ns] is newer than the newest transform."""
        try:
            newest = self._buffer.get_latest_common_time(self.base, frame).nanoseconds
        except self._tf.TransformException:
            return
        if newest < stamp:
            raise NotYetError(
                f'a stamp that tf2 can place is expected, got {(stamp - newest) / SECOND:.3f} s '
                f'after the newest transform from {frame!r}',
                Refusal.FRAME_UNKNOWN,
            )


def _optional(name: str) -> Any:
    """Return a module, or None if it is not installed; the ROS wheels have no tf2."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
