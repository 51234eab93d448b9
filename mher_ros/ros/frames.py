"""Places told in one frame, in that of the arm's base."""

from __future__ import annotations

import importlib
from typing import Any

from mher_ros.ros.wire import MessageError, SECOND, stamp_of
import mujoco
import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node
from rclpy.time import Time

__all__ = ['Frames', 'NotYetError']

Vector = NDArray[np.float64]


class NotYetError(MessageError):
    """A stamp newer than the newest transform: the transform may still come."""


class Frames:
    """
    Knows where other frames are, by tf2 where that is installed.

    The arm's own frame, and none at all, need no tf2.
    """

    def __init__(self, node: Node, base: str) -> None:
        self.base = base
        self._tf = _optional('tf2_ros')
        if self._tf is not None:
            self._buffer = self._tf.Buffer()
            self._listener = self._tf.TransformListener(self._buffer, node)

    def placement(self, header: Any) -> tuple[Vector, Vector]:
        """
        Return how a ``std_msgs/Header``'s frame lay in the base frame at its stamp.

        A stamp of 0 stands for the newest transform, as everywhere in tf2. NotYetError says that
        the transform may still come, any other MessageError that there is none.

        That is a rotation (3, 3) and a translation (3,) [m]: a point p of the frame lies at
        ``rotation @ p + translation``.
        """
        frame = header.frame_id
        if frame in ('', self.base):
            return np.eye(3), np.zeros(3)
        if self._tf is None:
            raise MessageError(
                f'frame {self.base!r} is expected where tf2_ros is not installed, got {frame!r}'
            )
        stamp = stamp_of(header.stamp)
        if stamp < 0:
            raise MessageError(f'a stamp of 0 or more is expected, got {stamp / SECOND:.3f} s')
        try:
            found = self._buffer.lookup_transform(self.base, frame, Time(nanoseconds=stamp))
        except self._tf.TransformException as error:
            self._check_newest(frame, stamp)
            raise MessageError(
                f'a frame and a stamp that tf2 can place in {self.base!r} are expected, '
                f'got {frame!r} at {stamp / SECOND:.3f} s: {error}'
            ) from error
        return _rotation(found.transform.rotation), _vector(found.transform.translation)

    def close(self) -> None:
        """Listen no longer."""
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
                f'after the newest transform from {frame!r}'
            )


def _rotation(quaternion: Any) -> Vector:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, [quaternion.w, quaternion.x, quaternion.y, quaternion.z])
    return matrix.reshape(3, 3)


def _vector(part: Any) -> Vector:
    return np.array([part.x, part.y, part.z])


def _optional(name: str) -> Any:
    """Return a module, or None where it is not installed; the ROS wheels come without tf2."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
