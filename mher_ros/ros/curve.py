"""A run's learning curve as a message."""

from __future__ import annotations

from collections.abc import Sequence

from mher_ros.learning.progress import Row
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

__all__ = ['curve_message']

COLUMNS = ('env_steps', 'success_rate', 'final_error')
LABELS = ('evaluation', 'environment steps, success rate, final error')


def curve_message(rows: Sequence[Row]) -> Float64MultiArray:
    """Return an array (evaluations, 3): environment steps, success rate, final error."""
    data = [float(row[column] or 0.0) for row in rows for column in COLUMNS]
    message = Float64MultiArray(data=data)
    message.layout.dim = [
        MultiArrayDimension(label=LABELS[0], size=len(rows), stride=len(data)),
        MultiArrayDimension(label=LABELS[1], size=len(COLUMNS), stride=len(COLUMNS)),
    ]
    return message
