"""Vectors and quaternions of ROS messages, which are ordered (x, y, z, w) and not (w, x, y, z)."""

from typing import Any

from mher_ros.interface import Vector


def set_vector(vector: Any, values: Vector) -> None:
    """Write an array (3,) into a ``Point`` or ``Vector3``."""
    vector.x, vector.y, vector.z = values.tolist()


def set_quaternion(quaternion: Any, values: Vector) -> None:
    """Write an array (4,) (w, x, y, z) into a ``Quaternion``."""
    quaternion.w, quaternion.x, quaternion.y, quaternion.z = values.tolist()


def numbers_of(position: Any, orientation: Any = None) -> list[float]:
    """Return (x, y, z) of a position, followed by (w, x, y, z) of an orientation, if given."""
    numbers = [position.x, position.y, position.z]
    if orientation is not None:
        numbers += [orientation.w, orientation.x, orientation.y, orientation.z]
    return numbers
