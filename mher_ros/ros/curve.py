"""A run's learning curve as a message."""

from __future__ import annotations

from collections.abc import Sequence

from mher_ros.learning.curve import curve_of
from mher_ros.learning.progress import Row
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

__all__ = ['curve_message']

LABELS = ('evaluation', 'environment steps, success rate, final error')


def curve_message(rows: Sequence[Row]) -> Float64MultiArray:
    """Return an array (evaluations, 3): environment steps, success rate, final error."""
    curve = curve_of(rows)
    evaluations, columns = curve.shape
    message = Float64MultiArray(data=curve.ravel().tolist())
    message.layout.dim = [
        MultiArrayDimension(label=LABELS[0], size=evaluations, stride=curve.size),
        MultiArrayDimension(label=LABELS[1], size=columns, stride=columns),
    ]
    return message
