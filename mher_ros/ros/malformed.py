"""Messages that cannot be read: counted for each node, and warned of."""

from __future__ import annotations

import weakref

from rclpy.node import Node

__all__ = ['count_malformed', 'malformed_messages']

_counts: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()


def count_malformed(node: Node, source: str, reason: object) -> None:
    """Count one message of a topic or service, ``source``, and warn of it, once a second."""
    _counts[node] = malformed_messages(node) + 1
    node.get_logger().warning(
        f'ignored a malformed message on {source}: {reason}', throttle_duration_sec=1.0
    )


def malformed_messages(node: Node) -> int:
    """Return how many there were."""
    return _counts.get(node, 0)
