"""Nodes of a bringup and its arguments; without launch and rclpy."""

import abc
from collections.abc import Mapping
import dataclasses
import enum
import os
from pathlib import Path
import re
import signal
from typing import Any, ClassVar

from mher_ros.files import share_folder
from mher_ros.options import option, OptionError
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.randomisation import MOST_RANDOM
from mher_ros.view.access_control import PORT

INTERRUPT_PATIENCE = 60.0  # time for a node to save its work after SIGINT, before SIGTERM [s]
TERMINATE_PATIENCE = 30.0  # time after SIGTERM before SIGKILL [s]
OWN_OF_SIMULATION = tuple((f'/{name}', name) for name in ('clock', 'tf', 'tf_static'))
"""Remappings of global topics: in a namespace each simulation has its own."""
PROFILE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
# Set by users who configure Fast DDS themselves.
FAST_DDS = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTDDS_BUILTIN_TRANSPORTS')
OWN_CHOICES = (PROFILE, *FAST_DDS, 'ROS_STATIC_PEERS')
OWN_FILE = 'DEFAULT_FASTRTPS_PROFILES.xml'  # Fast DDS reads it in the working folder

ROBOT_HELP = 'a name from config/robots, or the path of a YAML file'

Parameters = Mapping[str, bool | int | float | str]


class Role(enum.Enum):
    """Effect of the end of a node on the others."""

    MAIN = 'its end ends all, with its exit code'
    NEEDED = 'its end before the main node is a failure'
    OPTIONAL = 'the others continue without it'


@dataclasses.dataclass(frozen=True)
class NodeSpec:
    """One node: an ``executable`` of ``package``."""

    package: str
    executable: str
    name: str
    role: Role
    parameters: Parameters = dataclasses.field(default_factory=dict)
    arguments: tuple[str, ...] = ()  # before `--ros-args`
    remappings: tuple[tuple[str, str], ...] = ()  # (from, to)
    namespace: str = ''  # absolute, or relative to that of the launch


@dataclasses.dataclass(frozen=True)
class Bringup(abc.ABC):
    """
    Nodes that are started together.

    A subclass is a frozen dataclass whose fields, made by ``mher_ros.options.option``, are the
    arguments ``name:=value``. ``ros2 launch`` imports it with a Python that may lack the libraries
    of this package: a module with a Bringup imports none of them.
    """

    summary: ClassVar[str]

    namespace: str = option('', 'namespace of all nodes, for several arms in one ROS domain')
    use_sim_time: bool = option(
        False, 'true: nodes use the time of /clock, or of the simulation in their namespace'
    )
    rviz: bool = option(False, 'true: show arm, goal, workspace and motion in RViz')
    view: bool = option(
        False, 'true: show arm, goal, workspace and curves in a browser; the address is printed'
    )
    view_port: int = option(
        PORT, 'port of the page in the browser; if in use, the next free one', low=0, high=65535
    )

    def nodes(self) -> list[NodeSpec]:
        """Return the nodes in their order of start."""
        if self.namespace:
            check_name('namespace', self.namespace)
        clock = {'use_sim_time': True} if self.use_sim_time else {}
        nodes = self._nodes()
        is_simulated = any(node.executable == 'sim_node' for node in nodes)
        own = OWN_OF_SIMULATION if is_simulated else ()
        return [
            dataclasses.replace(
                node,
                namespace=self.namespace,
                parameters={**node.parameters, **clock},
                remappings=(*node.remappings, *own),
            )
            for node in nodes
        ]

    @abc.abstractmethod
    def _nodes(self) -> list[NodeSpec]:
        """Return the nodes without what all have in common."""

    def _values(self, kind: type) -> dict[str, bool | int | float | str]:
        """Return the arguments that ``kind``, a dataclass, declares."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(kind)}

    def _windows(self, layout: str, robot: str, frame: str = '') -> list[NodeSpec]:
        """Return RViz and the page, for ``robot``, else for ``frame``."""
        nodes = []
        if self.rviz:
            if robot:
                # Imported here because it needs PyYAML, which is part of ROS but not of Python.
                from mher_ros.robots.robot import load_robot

                # RViz needs no TF if everything is in its fixed frame. If the base frame depends
                # on the model, the frame of the layout stays.
                frame = load_robot(robot).base_frame
            where = ('-f', frame) if frame else ()
            words = ('-d', str(share_folder() / 'config' / 'rviz' / layout), *where)
            nodes.append(NodeSpec('rviz2', 'rviz2', 'rviz', Role.OPTIONAL, arguments=words))
        if self.view:
            # The robot file names the topics of states and model.
            page: Parameters = {'port': self.view_port, 'robot': robot}
            nodes.append(mher_node('view_node', Role.OPTIONAL, page))
        return nodes


@dataclasses.dataclass(frozen=True)
class ObstacleArguments:
    """Arguments of all nodes that take obstacles at run time."""

    planning_scene: str = option(
        '',
        "topic of MoveIt's planning scene, such as monitored_planning_scene, whose objects are "
        'obstacles, too; empty: none',
    )


@dataclasses.dataclass(frozen=True)
class PlantArguments:
    """Arguments of a simulated robot."""

    randomise: float = option(
        0.0,
        'with robot: draw the plant at the start, and at each reset with a seed, from the ranges '
        'of the robot file times this factor; 0: the nominal plant',
        low=0.0,
        high=MOST_RANDOM,
    )


@dataclasses.dataclass(frozen=True)
class PolicyArguments:
    """Arguments of a deployment, which are also parameters of policy_node."""

    robot: str = option('fetch', f'arm: {ROBOT_HELP}')
    policy: str = option(
        '',
        'policy file, or folder of a run; empty: the newest below runs/ of the working folder; '
        'with controller:=straight_line none, but the workspace of the robot file',
    )
    controller: str = option(
        'policy',
        'policy: the learnt policy; straight_line: the baseline, which moves straight to goals in '
        'the workspace of the policy, or of the robot file',
        choices=('policy', 'straight_line'),
    )
    output: str = option(
        'robot',
        'type of the commands to the arm; none: no commands, only markers; robot: as the robot '
        'file says',
        choices=('robot', *OUTPUTS),
    )
    outside: str = option(
        'reject',
        'goals outside the workspace: reject them, or project them to the nearest point inside',
        choices=('reject', 'project'),
    )
    speed: float = option(
        0.0, 'largest speed of the tool [m/s]; 0: as the robot file says', low=0.0, high=2.0
    )


def mher_node(name: str, role: Role, parameters: Parameters) -> NodeSpec:
    """Return a node of this package."""
    return NodeSpec('mher_ros', name, name, role, parameters)


def argument_rows(system: Bringup) -> list[dict[str, Any]]:
    """List name, default (as text), help and choices (or None) of every argument."""
    common = {field.name for field in dataclasses.fields(Bringup)}  # these are listed last
    return [
        {**field.metadata, 'name': field.name, 'default': as_text(getattr(system, field.name))}
        for field in sorted(dataclasses.fields(system), key=lambda field: field.name in common)
    ]


def check_name(key: str, name: str) -> None:
    """Raise OptionError unless ``name`` is a valid ROS name, absolute or relative."""
    if not re.fullmatch(r'/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*', name, re.ASCII):
        raise OptionError(f'{key} takes a name such as left/arm, got {name!r}')


def defaults_for_nodes() -> dict[str, str]:
    """Return default environment variables of nodes that are not set yet."""
    # By default, no arm on another machine can move.
    defaults = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    defaults |= loopback_profile({**defaults, **os.environ})
    return {name: value for name, value in defaults.items() if name not in os.environ}


def loopback_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables that keep a node on this machine, if that is wanted."""
    # With ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST a node searches for others on this machine only,
    # but Fast DDS listens on every network: it answers a unicast announcement, and its sender can
    # then publish commands and goals. The profile restricts it to the loopback interface.
    signs = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', 'ROS_LOCALHOST_ONLY': '1'}
    is_local = any(environment.get(name) == value for name, value in signs.items())
    is_chosen = any(environment.get(name) for name in OWN_CHOICES) or Path(OWN_FILE).exists()
    if not is_local or is_chosen:
        return {}
    return {PROFILE: str(share_folder() / 'config' / 'dds' / 'loopback.xml')}


def how_it_ended(returncode: int) -> str:
    """Return a text; ``returncode`` is an exit code, or -n if signal n ended the process."""
    if returncode >= 0:
        return f'ended with exit code {returncode}'
    return f'was ended by {signal.Signals(-returncode).name}'


def as_text(value: bool | int | float | str) -> str:
    """Return the value as it is written after ``:=``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
