"""A node of this package in a process of its own, for programs that need one for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import os
import subprocess
import sys

from mher_ros.ros.bringup.system import as_text

__all__ = ['node_process']

STOPPING = 10.0
"""Time that a node has to end [s]."""


@contextlib.contextmanager
def node_process(
    name: str,
    parameters: Mapping[str, bool | int | float | str],
    domain: int | None = None,
    *,
    namespace: str = '',
    module: str = 'mher_ros.ros',
) -> Iterator[subprocess.Popen[bytes]]:
    """
    Start a node, yield its process, and end it at the end.

    ``domain`` is its ROS domain (default: ROS_DOMAIN_ID), ``module`` the one that Python runs with
    the node's name as its argument. Traffic stays on this machine unless
    ROS_AUTOMATIC_DISCOVERY_RANGE says otherwise.
    """
    environment = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', **os.environ}
    if domain is not None:
        environment['ROS_DOMAIN_ID'] = str(domain)
    given = [
        word for key, value in parameters.items() for word in ('-p', f'{key}:={as_text(value)}')
    ]
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
