"""Bringups: nodes that are started together, by ``ros2 launch`` or by ``mher up``."""
