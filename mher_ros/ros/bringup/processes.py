"""Starts a system without ``ros2 launch``: the same nodes, as children of this process."""

from __future__ import annotations

from collections.abc import Mapping
import importlib.util
import os
from pathlib import Path
import shutil
import sys
from typing import Any

from mher_ros.errors import MherError
from mher_ros.ros.bringup.supervisor import Process, supervise, Write
from mher_ros.ros.bringup.system import as_text, defaults_for_nodes, NodeSpec, Role, without
from mher_ros.ros.bringup.systems import make_system

__all__ = ['require_rclpy', 'run_system']


def run_system(name: str, values: Mapping[str, Any], write: Write | None = None) -> int:
    """
    Run the system called ``name`` with ``values`` (or texts) of its arguments to its end.

    Returns its exit code; see ``supervise`` for what it is and what signals do. ``write`` takes
    the lines that the nodes print.
    """
    processes = []
    for node in make_system(name, values).nodes():
        if node.role is Role.OPTIONAL and not _is_installed(node):
            print(f'mher: {without(node)}', file=sys.stderr, flush=True)
        else:
            processes.append(Process(node.name, command_line(node), node.role))
    return supervise(processes, node_environment(), write)


def command_line(node: NodeSpec) -> list[str]:
    """Return the command that runs the node, with its name and parameters."""
    parameters = [
        word for key, value in node.parameters.items() for word in ('-p', f'{key}:={_yaml(value)}')
    ]
    names = [('__node', node.name), *node.remappings]
    if node.namespace:
        names.append(('__ns', f'/{node.namespace.removeprefix("/")}'))
    renamed = [word for old, new in names for word in ('-r', f'{old}:={new}')]
    ros_arguments = ['--ros-args', *renamed, *parameters]
    return [*_program(node), *node.arguments, *ros_arguments]


def node_environment() -> dict[str, str]:
    """Return the environment for nodes: this one's, with defaults for what is not set."""
    environment = {
        **defaults_for_nodes(),
        # Which node says it stands before each line already.
        'RCUTILS_CONSOLE_OUTPUT_FORMAT': '{message}',
        **os.environ,
        'PYTHONUNBUFFERED': '1',
    }
    if (Path(sys.prefix) / 'share' / 'ament_index').is_dir():  # ROS as wheels
        environment.setdefault('AMENT_PREFIX_PATH', sys.prefix)
    return environment


def require_rclpy() -> None:
    """Raise MherError if there is no ROS for this Python."""
    if importlib.util.find_spec('rclpy') is None:
        raise MherError(
            'rclpy was not found: source a ROS 2 installation, or use the environment that '
            '`make venv` creates'
        )


def _program(node: NodeSpec) -> list[str]:
    if node.package == 'mher_ros':
        require_rclpy()
        return [sys.executable, '-m', 'mher_ros.ros', node.executable]
    found = _find(node)
    if found is None:
        raise MherError(
            f'{node.executable} was not found: it comes with a ROS installation, which has to be '
            'sourced'
        )
    return [found]


def _is_installed(node: NodeSpec) -> bool:
    return node.package == 'mher_ros' or _find(node) is not None


def _find(node: NodeSpec) -> str | None:
    """Return the path of another package's program."""
    prefixes = [part for part in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if part]
    places = [str(Path(prefix, 'lib', node.package)) for prefix in prefixes]
    found = shutil.which(node.executable, path=os.pathsep.join(places) or None)
    return found or shutil.which(node.executable)


def _yaml(value: bool | int | float | str) -> str:
    """Return what ROS reads as the value, with its type: a text stays text, even ``1``."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else as_text(value)
