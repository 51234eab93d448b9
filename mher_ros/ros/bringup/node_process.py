"""Nodes that a program needs: one of this package in a process of its own, or its own client."""

from collections.abc import Iterator, Mapping
import contextlib
import os
import subprocess
import sys

from mher_ros.ros.bringup.node_spec import as_text, defaults_for_nodes
import rclpy
from rclpy.context import Context
from rclpy.node import Node

STOPPING = 10.0  # time that a node has to end [s]


@contextlib.contextmanager
def client_node(name: str, namespace: str = '') -> Iterator[Node]:
    """Yield a node in a ROS context of its own, which ends afterwards and handles no signals."""
    with Context() as context:
        yield rclpy.create_node(name, context=context, namespace=namespace)


@contextlib.contextmanager
def node_process(
    name: str,
    parameters: Mapping[str, bool | int | float | str],
    *,
    namespace: str = '',
    module: str = 'mher_ros.ros',
    log_level: str = 'info',
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a node of ``module``, yield its process, and end it afterwards."""
    # Messages stay on this machine unless ROS_AUTOMATIC_DISCOVERY_RANGE is set.
    environment = {**defaults_for_nodes(), **os.environ}
    given = [
        word for key, value in parameters.items() for word in ('-p', f'{key}:={as_text(value)}')
    ]
    given += ['--log-level', log_level]
    if namespace:
        given += ['-r', f'__ns:={namespace}']
    process = subprocess.Popen(
        [sys.executable, '-m', module, name, '--ros-args', *given], env=environment
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
