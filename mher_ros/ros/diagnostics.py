"""What a node says of itself on /diagnostics."""

from __future__ import annotations

from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from mher_ros.ros.malformed import malformed_messages
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

__all__ = ['report_diagnostics']

Report = tuple[bool, str, dict[str, str]]
"""Whether all is well, a sentence, and figures by name."""


def report_diagnostics(node: Node, diagnose: Callable[[], Report], period: float = 1.0) -> None:
    """Publish what ``diagnose`` returns, every ``period`` [s]."""
    publisher = node.create_publisher(DiagnosticArray, '/diagnostics', 10)

    def publish() -> None:
        well, text, figures = diagnose()
        figures['malformed messages'] = str(malformed_messages(node))
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK if well else DiagnosticStatus.WARN,
            name=node.get_fully_qualified_name().lstrip('/'),
            hardware_id=node.get_namespace(),
            message=text,
            values=[KeyValue(key=key, value=value) for key, value in figures.items()],
        )
        array = DiagnosticArray(status=[status])
        array.header.stamp = node.get_clock().now().to_msg()
        publisher.publish(array)

    # By the wall clock: a simulated one that stands still is told of, too.
    node.create_timer(period, publish, clock=Clock(clock_type=ClockType.STEADY_TIME))
