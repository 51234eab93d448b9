"""Makes the launch description of a bringup; the only module that imports launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import difflib
import logging
from pathlib import Path
import sys
from typing import Any, TYPE_CHECKING

from mher_ros.errors import MherError
from mher_ros.options import OptionError
from mher_ros.ros.bringup import node_spec
from mher_ros.ros.bringup.bringups import make_bringup
from mher_ros.ros.bringup.node_spec import NodeSpec, Role
from mher_ros.ros.bringup.processes import installed

if TYPE_CHECKING:
    from launch.action import Action
    from launch.events.process import ProcessExited
    from launch.launch_context import LaunchContext
    from launch.launch_description import LaunchDescription
    from launch_ros.actions import Node

OF_LAUNCH = ('launch-prefix', 'launch-prefix-filter')  # options of `ros2 launch` itself
END_ALL = {
    'name': 'end_all',
    'default': 'false',
    'help': 'if another launch file includes this one: true: the end of the main node ends '
    'that launch, too; false: only the nodes of this file',
    'choices': ('true', 'false'),
}


def launch_description(name: str, file: str) -> LaunchDescription:
    """
    Declare the arguments of the bringup ``name``, and start its nodes.

    ``file``: the launch file. If it is launched itself, the launch ends with the main node; the
    exit code is 0 if the node's is 0, else 1. If another file includes it, only its nodes end,
    unless ``end_all`` is true.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.launch_description import LaunchDescription
    from launch.logging import get_logger

    by_itself = is_launched(file, sys.argv)

    def start(context: LaunchContext) -> list[Node]:
        words = context.argv if by_itself else None
        warn = get_logger(name).warning
        return launch_nodes(*choose_nodes(name, context.launch_configurations, words, warn))

    declared = [
        DeclareLaunchArgument(
            row['name'],
            default_value=row['default'],
            description=row['help'],
            choices=list(row['choices']) if row['choices'] else None,
        )
        for row in argument_rows(name)
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=start)])


def argument_rows(name: str) -> list[dict[str, Any]]:
    """List name, default (as text), help and choices (or None) of every launch argument."""
    return [*node_spec.argument_rows(make_bringup(name, {})), END_ALL]


def choose_nodes(
    name: str,
    values: Mapping[str, str],
    command: Sequence[str] | None,
    warn: Callable[[str], None],
) -> tuple[list[NodeSpec], bool]:
    """
    Return the nodes to start, and whether the end of the main one ends the whole launch.

    ``values``: all arguments of the launch, maybe of others, too. ``command``: those on the
    command line if the file is launched itself; None: another file includes it.
    """
    names = [row['name'] for row in argument_rows(name)]
    if command is not None:
        check_arguments(name, command, names)
    for wrong, right in resembling(values, names):
        warn(f'{name} has no argument {wrong}; is {right} meant?')
    given = {key: values[key] for key in names}
    ends_all = given.pop('end_all') == 'true' or command is not None
    return installed(make_bringup(name, given).nodes(), warn), ends_all


def is_launched(file: str, command: Sequence[str]) -> bool:
    """Return whether a command launches this file, not one that includes it."""
    path = Path(file).resolve()
    by_name = ('mher_ros', path.name) in zip(command, command[1:], strict=False)
    return by_name or any(Path(word).resolve() == path for word in command[1:])


def check_arguments(name: str, given: Iterable[str], declared: Sequence[str]) -> None:
    """Raise OptionError for a text ``key:=value`` with an unknown key."""
    for key in (text.partition(':=')[0] for text in given):
        if key not in (*declared, *OF_LAUNCH):
            known = ', '.join(sorted(declared))
            raise OptionError(f'{name} has no argument {key!r}; it has {known}')


def resembling(given: Iterable[str], declared: Sequence[str]) -> list[tuple[str, str]]:
    """List keys that are probably misspelt arguments, each with that argument."""
    return [
        (key, close[0])
        for key in given
        if key not in declared and (close := difflib.get_close_matches(key, declared, 1, 0.8))
    ]


def launch_nodes(nodes: Sequence[NodeSpec], ends_all: bool) -> list[Node]:
    """Run nodes; the end of a main or needed one ends the whole launch, or these nodes."""
    from launch.actions import EmitEvent
    from launch.events import Shutdown
    from launch.events.process import ShutdownProcess
    from launch.logging import get_logger
    from launch_ros.actions import Node
    from launch_ros.parameter_descriptions import ParameterValue

    actions: list[Node] = []
    ending: list[str] = []

    def end(reason: str, failed: bool) -> list[Action]:
        if ends_all and failed:
            # An exception makes `ros2 launch` shut down with an exit code other than 0.
            raise MherError(reason)
        if ends_all:
            return [EmitEvent(event=Shutdown(reason=reason))]
        ending.append(reason)
        get_logger('mher_ros').log(logging.ERROR if failed else logging.INFO, reason)
        ours = ShutdownProcess(process_matcher=lambda action: action in actions)
        return [EmitEvent(event=ours)]

    def run(node: NodeSpec) -> Node:
        def on_exit(event: ProcessExited, context: LaunchContext) -> list[Action] | None:
            ended = f'{node.name} {node_spec.how_it_ended(event.returncode)}'
            if node.role is Role.MAIN and not ending:
                return end(ended, event.returncode != 0)
            if node.role is Role.NEEDED and not ending and not context.is_shutdown:
                return end(f'{ended}, but is needed', failed=True)
            return None

        # With the type of texts: launch would read 1e3 as a number.
        parameters = {
            name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
            for name, value in node.parameters.items()
        }
        return Node(
            package=node.package,
            executable=node.executable,
            name=node.name,
            namespace=node.namespace or None,
            parameters=[parameters] if parameters else None,
            remappings=list(node.remappings) or None,
            arguments=list(node.arguments),
            output='screen',
            additional_env={**node_spec.defaults_for_nodes(), 'PYTHONUNBUFFERED': '1'},
            sigterm_timeout=str(node_spec.INTERRUPT_PATIENCE),
            sigkill_timeout=str(node_spec.TERMINATE_PATIENCE),
            on_exit=on_exit,
        )

    actions += [run(node) for node in nodes]
    return actions
