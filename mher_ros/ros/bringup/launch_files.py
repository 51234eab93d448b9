"""Makes of a system what ``ros2 launch`` runs; the one module that imports launch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
import difflib
import logging
from pathlib import Path
import sys
from typing import Any, TYPE_CHECKING

from mher_ros.errors import MherError
from mher_ros.options import OptionError
from mher_ros.ros.bringup.system import (
    argument_rows,
    defaults_for_nodes,
    how_it_ended,
    INTERRUPT_PATIENCE,
    NodeSpec,
    Role,
    TERMINATE_PATIENCE,
    without,
)
from mher_ros.ros.bringup.systems import make_system

if TYPE_CHECKING:
    from launch.action import Action
    from launch.events.process import ProcessExited
    from launch.launch_context import LaunchContext
    from launch.launch_description import LaunchDescription
    from launch_ros.actions import Node

    OnExit = Callable[[ProcessExited, LaunchContext], list[Action] | None]

__all__ = ['check_arguments', 'is_launched', 'launch_description', 'launch_nodes', 'resembling']

OF_LAUNCH = ('launch-prefix', 'launch-prefix-filter')
"""Arguments that ``ros2 launch`` makes of its own options."""
END_ALL = 'end_all'
SAID_OF_END_ALL = (
    'where another launch file includes this one: true: the end of the main node ends that '
    'launch, too; false: only the nodes of this file'
)


def launch_description(name: str, file: str) -> LaunchDescription:
    """
    Declare the arguments of the system called ``name``, and start its nodes.

    ``file`` is the launch file. Launched by itself, the launch ends when the main node ends, with
    exit code 0 if that one's is 0, else 1. Included in another launch file, only the nodes of this
    one end, unless ``end_all`` is true.
    """
    from launch.actions import DeclareLaunchArgument, OpaqueFunction
    from launch.launch_description import LaunchDescription
    from launch.logging import get_logger

    rows = argument_rows(make_system(name, {}))
    names = [*(row['name'] for row in rows), END_ALL]

    def check(context: LaunchContext) -> None:
        if is_launched(file, sys.argv):
            check_arguments(name, context.argv, names)
        for wrong, right in resembling(context.launch_configurations, names):
            get_logger(name).warning(f'{name} has no argument {wrong}; is {right} meant?')

    def start(context: LaunchContext) -> list[Node]:
        given = {row['name']: context.launch_configurations[row['name']] for row in rows}
        ends_all = context.launch_configurations[END_ALL] == 'true' or is_launched(file, sys.argv)
        nodes = []
        for node in make_system(name, given).nodes():
            if node.role is Role.OPTIONAL and not _is_installed(node, context):
                get_logger(name).warning(without(node))
            else:
                nodes.append(node)
        return launch_nodes(nodes, ends_all)

    declared = [
        DeclareLaunchArgument(
            row['name'],
            default_value=row['default'],
            description=row['help'],
            choices=list(row['choices']) if row['choices'] else None,
        )
        for row in rows
    ]
    declared.append(
        DeclareLaunchArgument(
            END_ALL,
            default_value='false',
            description=SAID_OF_END_ALL,
            choices=['true', 'false'],
        )
    )
    return LaunchDescription(
        [OpaqueFunction(function=check), *declared, OpaqueFunction(function=start)]
    )


def is_launched(file: str, command: Sequence[str]) -> bool:
    """Return whether the words of ``command`` launch this file, not one that includes it."""
    path = Path(file).resolve()
    by_name = ('mher_ros', path.name) in zip(command, command[1:], strict=False)
    return by_name or any(Path(word).resolve() == path for word in command[1:])


def check_arguments(name: str, given: Iterable[str], declared: Sequence[str]) -> None:
    """Raise OptionError if one of the texts ``key:=value`` is of none of the arguments."""
    for key in (text.partition(':=')[0] for text in given):
        if key not in (*declared, *OF_LAUNCH):
            known = ', '.join(sorted(declared))
            raise OptionError(f'{name} has no argument {key!r}; it has {known}')


def resembling(given: Iterable[str], declared: Sequence[str]) -> list[tuple[str, str]]:
    """
    List the keys that are likely to be a misspelt argument, each with that argument.

    Where a file is included, other keys are arguments of the one that includes it.
    """
    pairs = []
    for key in given:
        close = difflib.get_close_matches(key, declared, 1, 0.8)
        if key not in declared and close:
            pairs.append((key, close[0]))
    return pairs


def launch_nodes(nodes: Sequence[NodeSpec], ends_all: bool) -> list[Node]:
    """
    Return the actions that run the nodes and do what their roles say when they end.

    ``ends_all``: the end of the main node, or of one that is needed, ends the whole launch; else
    it ends these nodes.
    """
    from launch.actions import EmitEvent
    from launch.events import Shutdown
    from launch.events.process import ShutdownProcess
    from launch.logging import get_logger

    actions: list[Node] = []
    ending: list[str] = []

    def end(reason: str, failed: bool) -> list[Action]:
        if ends_all and failed:
            # An exception makes `ros2 launch` shut down and end with a code other than 0.
            raise MherError(reason)
        if ends_all:
            return [EmitEvent(event=Shutdown(reason=reason))]
        ending.append(reason)
        get_logger('mher_ros').log(logging.ERROR if failed else logging.INFO, reason)
        ours = ShutdownProcess(process_matcher=lambda action: action in actions)
        return [EmitEvent(event=ours)]

    def run(node: NodeSpec) -> Node:
        def on_exit(event: ProcessExited, context: LaunchContext) -> list[Action] | None:
            ended = f'{node.name} {how_it_ended(event.returncode)}'
            if node.role is Role.MAIN and not ending:
                return end(ended, event.returncode != 0)
            if node.role is Role.NEEDED and not ending and not context.is_shutdown:
                return end(f'{ended}, but is needed', failed=True)
            return None

        return _run_node(node, on_exit)

    actions += [run(node) for node in nodes]
    return actions


def _run_node(node: NodeSpec, on_exit: OnExit) -> Node:
    from launch_ros.actions import Node

    return Node(
        package=node.package,
        executable=node.executable,
        name=node.name,
        namespace=node.namespace or None,
        parameters=[_parameters(node)] if node.parameters else None,
        remappings=list(node.remappings) or None,
        arguments=list(node.arguments),
        output='screen',
        additional_env={**defaults_for_nodes(), 'PYTHONUNBUFFERED': '1'},
        sigterm_timeout=str(INTERRUPT_PATIENCE),
        sigkill_timeout=str(TERMINATE_PATIENCE),
        on_exit=on_exit,
    )


def _is_installed(node: NodeSpec, context: LaunchContext) -> bool:
    from ament_index_python.packages import PackageNotFoundError
    from launch.substitutions.substitution_failure import SubstitutionFailure
    from launch_ros.substitutions import ExecutableInPackage

    try:
        ExecutableInPackage(node.executable, node.package).perform(context)
    except (PackageNotFoundError, SubstitutionFailure):
        return False
    return True


def _parameters(node: NodeSpec) -> dict[str, Any]:
    """Return the parameters, texts marked as such: launch would take 1e3 for a number."""
    from launch_ros.parameter_descriptions import ParameterValue

    return {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in node.parameters.items()
    }
