"""Subscriptions that are read by the thread that waits for them, not by an executor."""

from collections.abc import Mapping
import time
from typing import Any
import weakref

from mher_ros.ros.common.raw_messages import deserialise, MalformedError, MAX_BYTES, MessageError
from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

LATEST_ONLY = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Without acknowledgements a round trip wakes half as many threads; requests are repeated."""
BEST_EFFORT = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For a topic with several publishers: others must not displace the newest message that counts."""
MAX_TAKEN = 20  # messages that are taken at once
RELIABLE = QoSProfile(depth=1)  # for a message that may be published once, by hand
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For a message that later subscribers receive, too."""
RELIABLE_QUEUE = QoSProfile(depth=10)
"""For publishers: reliable, for subscribers that ask for it."""


class PolledTopic:
    """
    A subscription whose serialised messages are returned by ``take``.

    An executor costs hundreds of microseconds per message, a wait set of its own a fraction.
    """

    def __init__(self, node: Node, kind: type, topic: str, qos: QoSProfile = LATEST_ONLY) -> None:
        self.kind, self._node = kind, node
        self.received = 0
        """System time at which the last message was received [ns]."""
        self.infos: list[dict[str, Any]] = []
        """rclpy's info about each message of the last call of ``take_all``."""
        self.subscription = node.create_subscription(
            kind, topic, unused, qos, callback_group=NotSpun(), raw=True
        )
        self._wait_set = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)

    @property
    def topic(self) -> str:
        """Full name of the topic, remappings applied."""
        return str(self.subscription.topic_name)

    def is_malformed(self, error: MessageError) -> bool:
        """Return whether a message was malformed; if so, count it and warn."""
        if isinstance(error, MalformedError):
            count_malformed(self._node, self.topic, error)
            return True
        return False

    def read(self, raw: bytes, most: int = MAX_BYTES) -> Any | None:
        """Return the message of at most ``most`` bytes; None if it is malformed."""
        try:
            return deserialise(raw, self.kind, most)
        except MalformedError as error:
            self.is_malformed(error)
            return None

    def take(self, deadline: float) -> bytes | None:
        """Return the next message; None if there is none by ``deadline`` (``time.monotonic``)."""
        handle = self.subscription.handle
        with handle:
            self._wait_set.clear_entities()
            self._wait_set.add_subscription(handle)
            self._wait_set.wait(max(0, int(1e9 * (deadline - time.monotonic()))))
            taken = handle.take_message(self.kind, True)
        if taken is None:
            self.infos = []
            return None
        message, info = taken
        self.received, self.infos = received_time(info), [info]
        return message

    def take_all(self, deadline: float) -> list[bytes]:
        """Return all messages, the oldest first; wait until ``deadline`` if there are none."""
        message = self.take(deadline)
        if message is None:
            return []
        messages, handle = [message], self.subscription.handle
        with handle:
            # A limited number: a very fast publisher must not block the reader.
            while len(messages) < MAX_TAKEN and (taken := handle.take_message(self.kind, True)):
                messages.append(taken[0])
                self.infos.append(taken[1])
                self.received = received_time(taken[1])
        return messages


class NotSpun(CallbackGroup):
    """A callback group that no executor runs."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        """Never happens."""


def earliest_time(info: Mapping[str, Any]) -> int:
    """
    Return the system time [ns] from which a message counts, given rclpy's info about it.

    That is when it was sent or received, whichever is earlier: a process that was suspended
    receives late what was sent before. Not every middleware gives both times.
    """
    times = info['source_timestamp'], info['received_timestamp']
    return min((one for one in times if one > 0), default=time.time_ns())


def received_time(info: Mapping[str, Any]) -> int:
    """Return when a message was received; now if the middleware does not say it [ns]."""
    received = int(info['received_timestamp'])
    return received if received > 0 else time.time_ns()


def unused(*_: Any) -> Any:
    """Serve as the callback, which is never called."""


_counts: weakref.WeakKeyDictionary[Node, int] = weakref.WeakKeyDictionary()
_loggers: weakref.WeakKeyDictionary[Node, dict[str, RcutilsLogger]] = weakref.WeakKeyDictionary()


def count_malformed(node: Node, source: str, reason: object) -> None:
    """Count a malformed message of a topic or service, ``source``, and log a warning."""
    _counts[node] = malformed_messages(node) + 1
    warn_of_message(node, source, f'ignored a malformed message on {source}: {reason}')


def malformed_messages(node: Node) -> int:
    """Return the number of malformed messages so far."""
    return _counts.get(node, 0)


def warn_of_message(node: Node, source: str, text: str) -> None:
    """Log a warning about a topic or service, ``source``, at most once a second for each."""
    loggers = _loggers.setdefault(node, {})
    if source not in loggers:
        # rclpy throttles by logger and line: sources that share both would suppress each other.
        loggers[source] = get_logger(node.get_logger().name)
    loggers[source].warning(text, throttle_duration_sec=1.0)
