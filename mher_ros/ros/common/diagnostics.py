"""Diagnostics of a node on /diagnostics, for people and monitoring tools."""

from collections import deque
from collections.abc import Callable
import json
import statistics
import time

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from mher_ros.ros.common.arm_clock import STEADY
from mher_ros.ros.common.polled_topic import malformed_messages
from mher_ros.ros.common.status import NodeStatus
from rclpy.node import Node

Report = tuple[NodeStatus, dict[str, str]]  # status of a node, and figures by name for people


def report_diagnostics(node: Node, diagnose: Callable[[], Report]) -> None:
    """Publish what ``diagnose`` returns, once a second."""
    publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish() -> None:
        status, figures = diagnose()
        texts = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in status.figures().items()
        }
        texts |= figures | {'malformed messages': str(malformed_messages(node))}
        message = DiagnosticStatus(
            level=status.level.value,
            name=node.get_fully_qualified_name().lstrip('/'),
            hardware_id=node.get_namespace(),
            message=status.reason,
            values=[KeyValue(key=key, value=text) for key, text in texts.items()],
        )
        array = DiagnosticArray(status=[message])
        array.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(array)

    node.create_timer(1.0, publish, clock=STEADY)


KEPT = 10_000  # newest times
MICROSECOND, SECOND = 1_000, 1_000_000_000  # in nanoseconds


class Latency:
    """Times from the receipt of a joint state to the end of publishing the command for it."""

    def __init__(self, deadline: float) -> None:
        """Count commands that take longer than ``deadline`` [s]."""
        self._deadline = deadline * SECOND
        self._times: deque[int] = deque(maxlen=KEPT)
        self.missed = 0  # commands that were not published in time, in total

    def note(self, received: int) -> None:
        """Record the time since a message was received, at this system time [ns]."""
        taken = time.time_ns() - received
        self._times.append(taken)
        if taken > self._deadline:
            self.missed += 1

    def figures(self) -> dict[str, str]:
        """Return the figures since the last call, and start again."""
        times = [self._times.popleft() for _ in range(len(self._times))] or [0]
        return {
            'median latency [us]': f'{statistics.median(times) / MICROSECOND:.0f}',
            'longest latency [us]': f'{max(times) / MICROSECOND:.0f}',
            'deadlines missed': str(self.missed),
        }
