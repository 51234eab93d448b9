"""The robot file: an arm's model, joints, limits and topics in YAML."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
import dataclasses
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mher_ros.files import read_at_most, share_folder
from mher_ros.options import Settings, SettingsError
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.randomisation import Randomisation, read_randomisation
from mher_ros.robots.scene import CollisionOptions, Obstacle, read_collision, read_scene
from mher_ros.robots.singularity import read_singularity, SingularityOptions
import yaml

ROBOT_DESCRIPTION = 'robot_description'  # topic on which the model is published

TASK = 'task://'
MAX_BYTES = 2**15  # of a robot file; those of this package have 1500
DEEPEST = 10  # levels of nested lists and mappings
LONGEST = 1000  # characters of one value; Python can print a number of so many digits

Vector3 = tuple[float, float, float]


class RobotError(SettingsError):
    """A robot file is wrong; the text names the file, the key and what is expected."""


@dataclasses.dataclass(frozen=True)
class Span:
    """Limits of a joint that replace the model's; None: as in the model."""

    lower: float | None = None
    upper: float | None = None
    """[rad] or [m]"""
    velocity: float | None = None
    """[rad/s] or [m/s]"""
    acceleration: float | None = None
    """[rad/s^2] or [m/s^2]; models have none."""
    effort: float | None = None
    """[N m] or [N], of the simulation of a URDF."""


@dataclasses.dataclass(frozen=True)
class Placement:
    """Placement of a policy's training workspace on this arm."""

    origin: Vector3 | None = None
    """Its centre in the base frame [m]; None: as in training."""
    scale: float = 1.0
    """Size on this arm over size in training."""


class Box(NamedTuple):
    """The box that the tool is kept in, in the base frame [m]."""

    low: Vector3
    high: Vector3


@dataclasses.dataclass(frozen=True)
class Topics:
    """Names of the arm's topics."""

    robot_description: str = ROBOT_DESCRIPTION
    joint_states: str = 'joint_states'
    commands: Mapping[str, str] = dataclasses.field(
        default_factory=lambda: {name: one.topic for name, one in OUTPUTS.items() if one.message}
    )
    """By output."""


@dataclasses.dataclass(frozen=True)
class ToolPose:
    """Source of the tool's pose for policies with joint actions."""

    source: str = 'kinematics'
    """``kinematics``: joint positions and the model; ``topic``: it is measured."""
    topic: str = 'tracked_pose'
    """A geometry_msgs/PoseStamped, of a marker tracker or of motion capture."""
    frame: str = 'camera'
    """Frame of the measured pose, and of goals."""
    timeout: float = 0.2
    """Time without a measured pose after which the motion is interrupted [s]."""
    goals: Box | None = None
    """Box of goals in ``frame`` to learn on an arm that is not simulated."""

    @property
    def is_tracked(self) -> bool:
        """Whether the pose is measured."""
        return self.source == 'topic'


@dataclasses.dataclass(frozen=True)
class Robot:
    """The checked content of a robot file."""

    name: str
    """Name of the file."""
    folder: Path
    """Folder to which paths of models are relative."""
    description: str
    """A sentence for users."""
    model: str
    """``robot_description``, a path, ``package://PACKAGE/PATH`` or ``python://PROJECT/PATH``."""
    simulation_model: str
    """The same for a simulation, or ``task://TASK``: the arm of a task; empty: none."""
    base_frame: str
    """Frame of positions, goals and commands; empty: the model's root."""
    tool_frame: str
    tool_offset: Vector3
    """Position of the tool in ``tool_frame`` [m]."""
    joints: tuple[str, ...]
    """The commanded joints, in the order of the arm's controller."""
    joint_limits: Mapping[str, Span]
    """Limits that replace the model's, by joint."""
    home: Mapping[str, float]
    """Initial positions in simulation, by joint [rad or m]."""
    workspace: Placement
    box: Box | None
    """None: the workspace and a margin."""
    output: str
    """One of ``OUTPUTS``."""
    command_rate: float
    """Rate of commands [Hz]."""
    speed: float
    """Speed limit of the tool [m/s]."""
    acceleration: float
    """Acceleration limit of the tool [m/s^2]."""
    topics: Topics
    reaction_time: float = 0.15
    """Largest delay with which the arm carries out a command [s]."""
    collision: CollisionOptions = CollisionOptions()
    scene: tuple[Obstacle, ...] = ()
    """Obstacles in the base frame."""
    singularity: SingularityOptions = SingularityOptions()
    tool_pose: ToolPose = ToolPose()
    randomisation: Randomisation = Randomisation()
    """Ranges of simulated plants."""

    @property
    def simulation_task(self) -> str:
        """Task whose arm is simulated; empty if a file describes the simulation."""
        model = self.simulation_model
        return model.removeprefix(TASK) if model.startswith(TASK) else ''

    def simulated(self) -> Robot:
        """Return the same arm with the simulation's file as its model."""
        if not self.simulation_model or self.simulation_task:
            raise RobotError(
                f'robot {self.name}: simulation_model must name a file for this, got '
                f'{self.simulation_model or "none"}'
            )
        return dataclasses.replace(self, model=self.simulation_model)


def robot_names() -> tuple[str, ...]:
    """List the robots of this package."""
    return tuple(sorted(path.stem for path in _robots_folder().glob('*.yaml')))


def arm_names() -> tuple[str, ...]:
    """List the robots of this package without obstacles: each arm once."""
    return tuple(name for name in robot_names() if not load_robot(name).scene)


def load_robot(name_or_path: str | Path) -> Robot:
    """Read a robot of this package by its name, or any other by the path of its YAML file."""
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
        content = yaml.load(read_at_most(path, MAX_BYTES).decode(), _StrictLoader)
    # ValueError: not UTF-8, an impossible date; RuntimeError: home folder of an unknown user.
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
    A safe loader of plain values of limited size.

    It refuses duplicate keys, tags, and aliases, which could expand to very large values.
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


def _read(path: Path, settings: Settings) -> Robot:
    joints = settings.words('joints')
    model = settings.text('model')
    workspace, home = settings.section('workspace'), settings.section('home')
    folder = path.resolve().parent
    config = Robot(
        name=path.stem,
        folder=folder,
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
        home=MappingProxyType({name: home.number(name) for name in home.keys()}),
        workspace=Placement(
            workspace.vector3('origin', None), workspace.number('scale', 1.0, low=0.1, high=10.0)
        ),
        box=_box(settings, 'box', 'box'),
        output=settings.choice('output', tuple(OUTPUTS)),
        command_rate=settings.number('command_rate', 100.0, low=1.0, high=500.0),
        speed=settings.number('speed', 0.25, low=0.001, high=2.0),
        acceleration=settings.number('acceleration', 1.0, low=0.01, high=20.0),
        topics=_topics(settings.section('topics')),
        reaction_time=settings.number('reaction_time', Robot.reaction_time, low=0.0, high=1.0),
        collision=read_collision(settings.section('collision')),
        scene=read_scene(settings.section('scene'), folder),
        singularity=read_singularity(settings.section('singularity')),
        tool_pose=_tool_pose(settings),
        randomisation=read_randomisation(settings.section('randomise')),
    )
    workspace.finish()
    settings.finish()
    pose, topics = config.tool_pose, config.topics
    others = (topics.joint_states, topics.robot_description, *topics.commands.values())
    if pose.is_tracked and pose.topic in others:
        raise SettingsError(f'tool_pose.topic is a topic of its own; got {pose.topic!r}')
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
            one.number('effort', None, low=1e-3),
        )
        one.finish()
        if span.lower is not None and span.upper is not None and span.lower >= span.upper:
            raise SettingsError(
                f'joint_limits.{name}.lower is below upper; got {span.lower} and {span.upper}'
            )
        limits[name] = span
    return MappingProxyType(limits)


def _box(settings: Settings, key: str, name: str) -> Box | None:
    section = settings.section(key)
    if not section.keys():
        return None
    low, high = section.vector3('low'), section.vector3('high')
    section.finish()
    if any(start >= end for start, end in zip(low, high, strict=True)):
        raise SettingsError(f'{name}.low is below {name}.high in x, y and z; got {low}, {high}')
    return Box(low, high)


def _tool_pose(settings: Settings) -> ToolPose:
    section, usual = settings.section('tool_pose'), ToolPose()
    found = ToolPose(
        section.choice('source', ('kinematics', 'topic'), usual.source),
        section.topic('topic', usual.topic),
        section.text('frame', usual.frame),
        section.number('timeout', usual.timeout, low=0.01, high=2.0),
        _box(section, 'goals', 'tool_pose.goals'),
    )
    section.finish()
    if not found.frame:
        raise SettingsError('tool_pose.frame takes the name of a frame; got none')
    return found


def _topics(settings: Settings) -> Topics:
    usual = Topics()
    topics = Topics(
        settings.topic('robot_description', usual.robot_description),
        settings.topic('joint_states', usual.joint_states),
        {name: settings.topic(name, topic) for name, topic in usual.commands.items()},
    )
    settings.finish()
    return topics


def _robots_folder() -> Path:
    return share_folder() / 'config' / 'robots'
