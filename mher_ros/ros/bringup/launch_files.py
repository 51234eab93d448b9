"""Makes of a system what ``ros2 launch`` runs; the one module that imports launch."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING

from mher_ros.errors import MherError
from mher_ros.ros.bringup.system import (
    argument_rows,
    defaults_for_nodes,
    how_it_ended,
    INTERRUPT_PATIENCE,
    NodeSpec,
    Role,
    TERMINATE_PATIENCE,
)
from mher_ros.ros.bringup.systems import make_system

if TYPE_CHECKING:
    from launch.events.process import ProcessExited
    from launch.launch_context import LaunchContext
    from launch.launch_description import LaunchDescription
    from launch_ros.actions import Node

__all__ = ['launch_description']


def launch_description(name: str) -> LaunchDescription:
    """
    Declare the arguments of the system called ``name``, and start its nodes.

    The launch ends when the main node ends, with exit code 0 if that one's is 0, else 1.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.launch_description import LaunchDescription

    rows = argument_rows(make_system(name, {}))

    def start(context: LaunchContext) -> list[Node]:
        given = {row['name']: context.launch_configurations[row['name']] for row in rows}
        return [launch_node(node) for node in make_system(name, given).nodes()]

    declared = [
        DeclareLaunchArgument(
            row['name'],
            default_value=row['default'],
            description=row['help'],
            choices=list(row['choices']) if row['choices'] else None,
        )
        for row in rows
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def launch_node(node: NodeSpec) -> Node:
    """Return the action that runs the node and does what its role says when it ends."""
    from launch.actions import EmitEvent
    from launch.events import Shutdown
    from launch_ros.actions import Node

    def on_exit(event: ProcessExited, context: LaunchContext) -> list[EmitEvent] | None:
        ended = f'{node.name} {how_it_ended(event.returncode)}'
        # An exception is what makes `ros2 launch` shut down and end with a code other than 0.
        if node.role is Role.MAIN and event.returncode != 0:
            raise MherError(ended)
        if node.role is Role.NEEDED and not context.is_shutdown:
            raise MherError(f'{ended}, but is needed')
        return [EmitEvent(event=Shutdown(reason=ended))] if node.role is Role.MAIN else None

    return Node(
        package=node.package,
        executable=node.executable,
        name=node.name,
        parameters=[_parameters(node)] if node.parameters else None,
        arguments=list(node.arguments),
        output='screen',
        additional_env={**defaults_for_nodes(), 'PYTHONUNBUFFERED': '1'},
        sigterm_timeout=str(INTERRUPT_PATIENCE),
        sigkill_timeout=str(TERMINATE_PATIENCE),
        on_exit=on_exit,
    )


def _parameters(node: NodeSpec) -> dict[str, Any]:
    """Return the parameters, texts marked as such: launch would take 1e3 for a number."""
    from launch_ros.parameter_descriptions import ParameterValue

    return {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in node.parameters.items()
    }
