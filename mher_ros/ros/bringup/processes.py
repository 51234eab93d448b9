"""Starts a bringup without ``ros2 launch``: the same nodes, as child processes."""

from collections.abc import Callable, Mapping, Sequence
import importlib.util
import os
from pathlib import Path
import shutil
import sys
from typing import Any

from mher_ros.errors import MherError
from mher_ros.ros.bringup.bringups import make_bringup
from mher_ros.ros.bringup.node_spec import as_text, defaults_for_nodes, NodeSpec, Role
from mher_ros.ros.bringup.supervisor import Process, supervise


def run_bringup(name: str, values: Mapping[str, Any]) -> int:
    """Run a bringup with ``values`` (or texts) of its arguments; return the exit code."""
    nodes = installed(
        make_bringup(name, values).nodes(),
        lambda text: print(f'mher: {text}', file=sys.stderr, flush=True),
    )
    processes = [Process(node.name, command_line(node), node.role) for node in nodes]
    return supervise(processes, node_environment())


def installed(nodes: Sequence[NodeSpec], warn: Callable[[str], None]) -> list[NodeSpec]:
    """Return the nodes without optional ones that are not installed; warn of these."""
    found = []
    for node in nodes:
        if node.role is Role.OPTIONAL and _find(node) is None:
            warn(f'continuing without {node.name}: {_not_found(node)}')
        else:
            found.append(node)
    return found


def command_line(node: NodeSpec) -> list[str]:
    parameters = [
        word for key, value in node.parameters.items() for word in ('-p', f'{key}:={_yaml(value)}')
    ]
    names = [('__node', node.name), *node.remappings]
    if node.namespace:
        names.append(('__ns', f'/{node.namespace.removeprefix("/")}'))
    renamed = [word for old, new in names for word in ('-r', f'{old}:={new}')]
    return [*_program(node), *node.arguments, '--ros-args', *renamed, *parameters]


def node_environment() -> dict[str, str]:
    """Return the environment of nodes: that of this process, with defaults."""
    environment = {
        **defaults_for_nodes(),
        # The name of the node is already at the start of each line.
        'RCUTILS_CONSOLE_OUTPUT_FORMAT': '{message}',
        **os.environ,
        'PYTHONUNBUFFERED': '1',
    }
    if (Path(sys.prefix) / 'share' / 'ament_index').is_dir():  # ROS as wheels
        environment.setdefault('AMENT_PREFIX_PATH', sys.prefix)
    return environment


def require_rclpy() -> None:
    if importlib.util.find_spec('rclpy') is None:
        raise MherError(
            'rclpy was not found: source a ROS 2 installation, or use the environment that '
            '`make venv` creates'
        )


def _program(node: NodeSpec) -> list[str]:
    if node.package == 'mher_ros':
        require_rclpy()
    found = _find(node)
    if found is None:
        raise MherError(_not_found(node))
    return found


def _find(node: NodeSpec) -> list[str] | None:
    """Return the command that starts a node; None if it is not installed."""
    if node.package == 'mher_ros':
        return [sys.executable, '-m', 'mher_ros.ros', node.executable]
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    places = [str(Path(prefix, 'lib', node.package)) for prefix in prefixes if prefix]
    found = shutil.which(node.executable, path=os.pathsep.join(places))
    return None if found is None else [found]


def _not_found(node: NodeSpec) -> str:
    return f'{node.executable} was not found; it is part of a ROS installation: source that first'


def _yaml(value: bool | int | float | str) -> str:
    """Return the value as ROS reads it with its type: a text stays a text, even ``1``."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else as_text(value)
