"""What a system is: arguments, and the nodes that run for them. Knows neither launch nor rclpy."""

from __future__ import annotations

import abc
from collections.abc import Mapping
import dataclasses
import enum
import os
import re
import signal
from typing import Any, ClassVar

from mher_ros.options import option, OptionError
from mher_ros.ros.loopback import loopback_profile

__all__ = [
    'argument_rows',
    'as_text',
    'check_name',
    'defaults_for_nodes',
    'how_it_ended',
    'INTERRUPT_PATIENCE',
    'NodeSpec',
    'Role',
    'System',
    'TERMINATE_PATIENCE',
    'without',
]

INTERRUPT_PATIENCE = 20.0
"""How long a node that was sent SIGINT may take to save its work before SIGTERM [s]."""
TERMINATE_PATIENCE = 10.0
"""How long it has after SIGTERM before SIGKILL [s]."""


class Role(enum.Enum):
    """What the end of a node means to the others."""

    MAIN = 'its end is the end of all, with its exit code'
    NEEDED = 'if it ends first, that is a failure'
    OPTIONAL = 'the others go on without it'


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """
    One node: an ``executable`` of ``package``.

    An executable of mher_ros is also the module of that name in ``mher_ros.ros``.
    """

    package: str
    executable: str
    name: str
    role: Role
    parameters: Mapping[str, bool | int | float | str] = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    """What comes before ``--ros-args``."""
    remappings: tuple[tuple[str, str], ...] = ()
    """Names of topics, and those that take their place."""
    namespace: str = ''
    """Absolute, or relative to the one that it is started in."""


@dataclasses.dataclass(frozen=True)
class System(abc.ABC):
    """
    Nodes that belong together.

    A subclass is a frozen dataclass whose fields, made by ``mher_ros.options.option``, are the
    arguments people give as ``name:=value``. It is read by ``ros2 launch``, whose Python knows
    ROS but need not know the libraries of this package: a module with a System imports none.
    """

    summary: ClassVar[str]

    namespace: str = option('', 'namespace of all nodes, for several arms in one ROS domain')
    use_sim_time: bool = option(False, 'true: nodes take the time from /clock')

    def nodes(self) -> list[NodeSpec]:
        """Return the nodes in the order in which they start."""
        if self.namespace:
            check_name('namespace', self.namespace)
        clock = {'use_sim_time': True} if self.use_sim_time else {}
        return [
            dataclasses.replace(
                node, namespace=self.namespace, parameters={**node.parameters, **clock}
            )
            for node in self._nodes()
        ]

    @abc.abstractmethod
    def _nodes(self) -> list[NodeSpec]:
        """Return the nodes, but for what all have in common."""


def argument_rows(system: System) -> list[dict[str, Any]]:
    """List name, default (as text), help and choices (or None) of every argument."""
    common = {field.name for field in dataclasses.fields(System)}  # they come last
    return [
        {
            'name': field.name,
            'default': as_text(getattr(system, field.name)),
            'help': field.metadata['help'],
            'choices': field.metadata['choices'],
        }
        for field in sorted(dataclasses.fields(system), key=lambda field: field.name in common)
    ]


def check_name(key: str, name: str) -> None:
    """Raise OptionError unless ``name`` is one of ROS, absolute or relative."""
    if not re.fullmatch(r'/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*', name, re.ASCII):
        raise OptionError(f'{key} takes a name such as left/arm, got {name!r}')


def defaults_for_nodes() -> dict[str, str]:
    """Return the environment variables that nodes get unless they are set already."""
    # Nobody else's arm is to move because a default reached it.
    defaults = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    defaults |= loopback_profile({**defaults, **os.environ})
    return {name: value for name, value in defaults.items() if name not in os.environ}


def how_it_ended(returncode: int) -> str:
    """Say it; ``returncode`` is an exit code, or -n if signal n ended the process."""
    if returncode >= 0:
        return f'ended with exit code {returncode}'
    return f'was ended by {signal.Signals(-returncode).name}'


def without(node: NodeSpec) -> str:
    """Say that a node whose program is not installed is left out."""
    return (
        f'going on without {node.name}: {node.executable} was not found; it comes with a ROS '
        'installation, which has to be sourced'
    )


def as_text(value: bool | int | float | str) -> str:
    """Return the value as people write it after ``:=``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
