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

__all__ = ['Frames']

Vector = NDArray[np.float64]

NEWEST = Time()
"""What tf2 takes for the newest transform there is."""
OLDEST = 1.0
"""Time between a message and the transform that it is placed by, at most [s]."""


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
        Return how a ``std_msgs/Header``'s frame lies in the base frame.

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
        try:
            found = self._buffer.lookup_transform(self.base, frame, NEWEST)
        except self._tf.TransformException as error:
            raise MessageError(
                f'a frame that tf2 can place in {self.base!r} is expected, got {frame!r}: {error}'
            ) from error
        _check_age(frame, found.header.stamp, header.stamp)
        return _rotation(found.transform.rotation), _vector(found.transform.translation)

    def close(self) -> None:
        """Listen no longer."""
        if self._tf is not None:
            self._listener.unregister()


def _check_age(frame: str, transform: Any, message: Any) -> None:
    """Refuse a transform of another time; one that never changes has none."""
    stamps = [stamp_of(stamp) for stamp in (transform, message)]
    if all(stamps) and abs(stamps[1] - stamps[0]) > OLDEST * SECOND:
        raise MessageError(
            f'a transform from {frame!r} within {OLDEST} s of the message is expected, '
            f'got one {abs(stamps[1] - stamps[0]) / SECOND:.1f} s off'
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
