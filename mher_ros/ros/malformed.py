"""Messages that a node cannot use: a warning for each topic, a count of malformed ones."""

from __future__ import annotations

import weakref

from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import get_logger
from rclpy.node import Node

__all__ = ['count_malformed', 'malformed_messages', 'warn_of_message']

_counts: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()
_loggers: weakref.WeakKeyDictionary[Node, dict[str, RcutilsLogger]] = weakref.WeakKeyDictionary()


def count_malformed(node: Node, source: str, reason: object) -> None:
    """Count one message of a topic or service, ``source``, and warn of it."""
    _counts[node] = malformed_messages(node) + 1
    warn_of_message(node, source, f'ignored a malformed message on {source}: {reason}')


def malformed_messages(node: Node) -> int:
    """Return how many there were."""
    return _counts.get(node, 0)


def warn_of_message(node: Node, source: str, text: str) -> None:
    """Warn of a message of a topic or service, ``source``, at most once a second for each."""
    loggers = _loggers.setdefault(node, {})
    if source not in loggers:
        # rclpy throttles by logger and line, so sources that share both would silence each other.
        loggers[source] = get_logger(node.get_logger().name)
    loggers[source].warning(text, throttle_duration_sec=1.0)
