"""An arm as one YAML file describes it: its model, its joints, its limits, its topics."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
import dataclasses
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mher_ros.control.settings import Settings, SettingsError
from mher_ros.files import read_at_most
from mher_ros.share import share_folder
import yaml

__all__ = [
    'Box',
    'load_robot',
    'OUTPUTS',
    'Placement',
    'ROBOT_DESCRIPTION',
    'RobotConfig',
    'RobotError',
    'robot_names',
    'Span',
    'Topics',
]

OUTPUTS = ('twist', 'pose', 'joint_trajectory', 'joint_position', 'joint_velocity', 'none')
"""Ways to command an arm; ``none`` sends nothing."""
ROBOT_DESCRIPTION = 'robot_description'
"""The model that comes over the topic of this name."""

TASK = 'task://'
MOST_BYTES = 2**15
"""Of a robot's file; those that come along have 1500."""
DEEPEST = 10
"""Levels of lists and mappings in it."""
LONGEST = 1000
"""Characters of one value; a number of so many digits can still be printed."""

Vector3 = tuple[float, float, float]


class RobotError(SettingsError):
    """A description of an arm that cannot be used; names the file, the key, what is expected."""


@dataclasses.dataclass(frozen=True)
class Span:
    """Limits that are given instead of the model's; None leaves the model's in force."""

    lower: float | None = None
    upper: float | None = None
    """[rad] or [m]"""
    velocity: float | None = None
    """[rad/s] or [m/s]"""
    acceleration: float | None = None
    """[rad/s^2] or [m/s^2]; models tell none."""


@dataclasses.dataclass(frozen=True)
class Placement:
    """Where the workspace that a policy was trained in lies on this arm."""

    origin: Vector3 | None = None
    """Its centre in the base frame [m]; None: where it was trained."""
    scale: float = 1.0
    """Its size on this arm over its size in training."""


@dataclasses.dataclass(frozen=True)
class Box:
    """What the tool is kept inside of, in the base frame [m]."""

    low: Vector3
    high: Vector3


@dataclasses.dataclass(frozen=True)
class Topics:
    """Names of the arm's topics."""

    robot_description: str = ROBOT_DESCRIPTION
    joint_states: str = 'joint_states'
    twist: str = 'twist_command'
    pose: str = 'pose_command'
    joint_trajectory: str = 'joint_trajectory'
    joint_position: str = 'commands'
    joint_velocity: str = 'commands'


@dataclasses.dataclass(frozen=True)
class RobotConfig:
    """One arm; every value was checked."""

    name: str
    """Of its file."""
    folder: Path
    """Paths of models are relative to this."""
    description: str
    """A sentence for people."""
    model: str
    """``robot_description``, a path, ``package://PACKAGE/PATH`` or ``python://PROJECT/PATH``."""
    simulation_model: str
    """The same for a simulation, or ``task://TASK``: that task's arm; empty: there is none."""
    base_frame: str
    """Frame of positions, goals and commands; empty: the model's root."""
    tool_frame: str
    tool_offset: Vector3
    """The point that reaches for goals, in ``tool_frame`` [m]."""
    joints: tuple[str, ...]
    """Those commanded, in the order of the arm's controller."""
    joint_limits: Mapping[str, Span]
    """Limits given instead of the model's, by joint."""
    home: Mapping[str, float]
    """Where a simulation starts, by joint [rad or m]."""
    workspace: Placement
    box: Box | None
    """None: the placed workspace and a margin."""
    output: str
    """One of ``OUTPUTS``."""
    command_rate: float
    """Most commands in a second [Hz]."""
    speed: float
    """Most that is asked of the tool [m/s]."""
    acceleration: float
    """[m/s^2]"""
    topics: Topics

    @property
    def simulation_task(self) -> str:
        """Name of the task whose arm it is in simulation; empty where a file describes it."""
        model = self.simulation_model
        return model.removeprefix(TASK) if model.startswith(TASK) else ''

    def simulated(self) -> RobotConfig:
        """Return the same arm with the file for its model that a simulation takes."""
        if not self.simulation_model or self.simulation_task:
            raise RobotError(
                f'robot {self.name}: simulation_model must name a file for this, got '
                f'{self.simulation_model or "none"}'
            )
        return dataclasses.replace(self, model=self.simulation_model)


def robot_names() -> tuple[str, ...]:
    """List the arms that come with this package."""
    return tuple(sorted(path.stem for path in _robots_folder().glob('*.yaml')))


def load_robot(name_or_path: str | Path) -> RobotConfig:
    """Read an arm that comes with this package, by its name, or any other, by its YAML file."""
    path = Path(name_or_path)
    if path.suffix not in ('.yaml', '.yml'):
        path = _robots_folder() / f'{name_or_path}.yaml'
        if path.stem not in robot_names():
            raise RobotError(
                f'robot takes one of {", ".join(robot_names())}, or a path that ends in .yaml; '
                f'got {str(name_or_path)!r}'
            )
    try:
        path = path.expanduser()
        content = yaml.load(read_at_most(path, MOST_BYTES).decode(), _StrictLoader)
    # ValueError: no UTF-8, an impossible date; RuntimeError: a home folder of nobody.
    except (OSError, OverflowError, RuntimeError, ValueError, yaml.YAMLError) as error:
        raise RobotError(f'{path}: a YAML file is expected, got {error}') from None
    try:
        return _read(path, Settings(content))
    except RobotError:
        raise
    except SettingsError as error:
        raise RobotError(f'{path}: {error}') from None


class _StrictLoader(yaml.SafeLoader):
    """
    A safe loader of plain values within limits.

    It does not let the second of two speeds win silently. There are no aliases, which could stand
    for far more than is written, and no tags.
    """

    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> yaml.Node:
        event = self.peek_event()
        length = len(event.value) if isinstance(event, yaml.ScalarEvent) else 0
        for trouble in (
            isinstance(event, yaml.AliasEvent) and 'an alias (*)',
            getattr(event, 'tag', None) is not None and 'a tag (!)',
            self._depth == DEEPEST and f'more than {DEEPEST} levels',
            length > LONGEST and f'a text of more than {LONGEST} characters',
        ):
            if trouble:
                raise yaml.composer.ComposerError(None, None, trouble, event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        assert node is not None
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f'the key {key.value!r} twice', key.start_mark
                    )
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def _read(path: Path, settings: Settings) -> RobotConfig:
    joints = settings.words('joints')
    model = settings.text('model')
    workspace = settings.section('workspace')
    config = RobotConfig(
        name=path.stem,
        folder=path.resolve().parent,
        description=settings.text('description', ''),
        model=model,
        simulation_model=settings.text(
            'simulation_model', '' if model == ROBOT_DESCRIPTION else model
        ),
        base_frame=settings.text('base_frame', ''),
        tool_frame=settings.text('tool_frame'),
        tool_offset=settings.vector3('tool_offset', (0.0, 0.0, 0.0)),
        joints=joints,
        joint_limits=_limits(settings.section('joint_limits'), joints),
        home=MappingProxyType(settings.section('home').numbers()),
        workspace=Placement(
            workspace.vector3('origin', None), workspace.number('scale', 1.0, low=0.1, high=10.0)
        ),
        box=_box(settings),
        output=settings.choice('output', OUTPUTS),
        command_rate=settings.number('command_rate', 100.0, low=1.0, high=500.0),
        speed=settings.number('speed', 0.25, low=0.001, high=2.0),
        acceleration=settings.number('acceleration', 1.0, low=0.01, high=20.0),
        topics=_topics(settings.section('topics')),
    )
    workspace.finish()
    settings.finish()
    missing = [name for name in joints if config.home and name not in config.home]
    if missing:
        raise SettingsError(f'home names every joint of joints, or none; {missing} are missing')
    return config


def _limits(settings: Settings, joints: tuple[str, ...]) -> Mapping[str, Span]:
    limits = {}
    for name in settings.keys():
        if name not in joints:
            raise SettingsError(f'joint_limits are of {", ".join(joints)}; got {name!r}')
        one = settings.section(name)
        span = Span(
            one.number('lower', None),
            one.number('upper', None),
            one.number('velocity', None, low=1e-3),
            one.number('acceleration', None, low=1e-2),
        )
        one.finish()
        if span.lower is not None and span.upper is not None and span.lower >= span.upper:
            raise SettingsError(
                f'joint_limits.{name}.lower is below upper; got {span.lower} and {span.upper}'
            )
        limits[name] = span
    return MappingProxyType(limits)


def _box(settings: Settings) -> Box | None:
    section = settings.section('box')
    if not section.keys():
        return None
    low, high = section.vector3('low'), section.vector3('high')
    section.finish()
    if any(start >= end for start, end in zip(low, high, strict=True)):
        raise SettingsError(f'box.low is below box.high in x, y and z; got {low} and {high}')
    return Box(low, high)


def _topics(settings: Settings) -> Topics:
    defaults = dataclasses.asdict(Topics())
    topics = Topics(**{name: settings.topic(name, defaults[name]) for name in defaults})
    settings.finish()
    return topics


def _robots_folder() -> Path:
    return share_folder() / 'config' / 'robots'
