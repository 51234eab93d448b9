"""Messages taken by the thread that waits for them, not by an executor."""

from __future__ import annotations

import time
from typing import Any

from mher_ros.ros.malformed import count_malformed
from mher_ros.ros.wire import deserialise, MalformedError, MessageError, MOST_BYTES
from rclpy.callback_groups import CallbackGroup
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

__all__ = ['Inbox', 'LATCHED', 'LISTENING', 'NotSpun', 'RELIABLE', 'SEVERAL', 'SPEAKING']

LISTENING = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""
Only the newest counts, and nothing is acknowledged: that halves the threads woken by a round trip.

Whoever needs an answer asks again anyway, since the other process may have died.
"""
SEVERAL = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
"""For a topic on which others speak, too: none of theirs displaces the newest that counts."""
MOST = 20
"""Messages that are taken at once, at most."""
RELIABLE = QoSProfile(depth=1)
"""For a message that somebody may publish once, by hand."""
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For a message that was published before anybody listened."""
SPEAKING = QoSProfile(depth=10)
"""What is published for an inbox; reliable, for others that want it so."""


class Inbox:
    """
    A subscription whose messages arrive serialised, for whoever calls ``take``.

    An executor costs hundreds of microseconds a message; a wait set of its own a fraction.
    """

    def __init__(self, node: Node, kind: type, topic: str, qos: QoSProfile = LISTENING) -> None:
        self.kind, self._node = kind, node
        self.received = 0
        """When the message last taken came, by the system's clock [ns]."""
        self.abouts: list[dict[str, Any]] = []
        """What rclpy says about each message that ``take_all`` returned last."""
        self.subscription = node.create_subscription(
            kind, topic, _nobody, qos, callback_group=NotSpun(), raw=True
        )
        self._wait_set = rclpy_implementation.WaitSet(1, 0, 0, 0, 0, 0, node.context.handle)

    @property
    def topic(self) -> str:
        """Full name of the topic, remappings applied."""
        return str(self.subscription.topic_name)

    def is_malformed(self, error: MessageError) -> bool:
        """Return whether the error is about a malformed message; if so, count it and warn."""
        if isinstance(error, MalformedError):
            count_malformed(self._node, self.topic, error)
            return True
        return False

    def read(self, raw: bytes, most: int = MOST_BYTES) -> Any | None:
        """Return the message of at most ``most`` bytes; None if it is malformed."""
        try:
            return deserialise(raw, self.kind, most)
        except MalformedError as error:
            self.is_malformed(error)
            return None

    def take(self, deadline: float) -> bytes | None:
        """Return the next message; None if there is none until ``time.monotonic()`` says so."""
        handle = self.subscription.handle
        with handle:
            self._wait_set.clear_entities()
            self._wait_set.add_subscription(handle)
            self._wait_set.wait(max(0, int(1e9 * (deadline - time.monotonic()))))
            taken = handle.take_message(self.kind, True)
        if taken is None:
            self.abouts = []
            return None
        message, about = taken
        self.received, self.abouts = about['received_timestamp'], [about]
        return message

    def take_all(self, deadline: float) -> list[bytes]:
        """Return what has come, the oldest first; wait until ``deadline`` if there is nothing."""
        message = self.take(deadline)
        if message is None:
            return []
        messages, handle = [message], self.subscription.handle
        with handle:
            # No more than are kept: who publishes faster than this reads must not hold it up.
            while (
                len(messages) < MOST
                and (taken := handle.take_message(self.kind, True)) is not None
            ):
                messages.append(taken[0])
                self.abouts.append(taken[1])
                self.received = taken[1]['received_timestamp']
        return messages


class NotSpun(CallbackGroup):
    """A group of which an executor may run nothing."""

    def can_execute(self, entity: Any) -> bool:
        """Refuse."""
        return False

    def beginning_execution(self, entity: Any) -> bool:
        """Refuse."""
        return False

    def ending_execution(self, entity: Any) -> None:
        """Never happens."""


def _nobody(message: Any) -> None:
    """Stand where a callback is asked for."""
