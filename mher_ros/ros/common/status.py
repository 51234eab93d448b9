"""
The status of a node: dataclasses on the latched topic ``~/status``.

The message is ``diagnostic_msgs/DiagnosticStatus``: ``message`` is a sentence for people, and
``values`` has one JSON value for each other field, by its name. Programs read these;
``/diagnostics`` is for people and monitoring tools.
"""

from collections.abc import Callable
import dataclasses
import enum
import functools
import json
import math
import threading
import time
import types
from typing import Any, cast, get_args, get_origin, get_type_hints, TypeVar

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue
from mher_ros.ros.common.arm_clock import STEADY
from mher_ros.ros.common.polled_topic import count_malformed, earliest_time, LATCHED
from mher_ros.ros.common.raw_messages import MalformedError
import numpy as np
from numpy.typing import ArrayLike
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

Point = tuple[float, float, float]
"""A position [m]."""
Box = tuple[Point, Point]
"""Its low and its high corner [m]."""
Nearest = tuple[str, str, float]
"""Two parts of the arm, or an obstacle and a part, and their distance [m]."""
Kind = TypeVar('Kind', bound='NodeStatus')

STATUS = '~/status'
ACCEPTED = 'accepted'
IDLE_STATES = ('unconfigured', 'configuring', 'inactive')
"""States of a policy_node that takes no goals; the others are codes of ``Status``."""
EVERY = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For subscribers that need each status, not only the last."""
_kinds: Callable[[type], dict[str, Any]] = functools.cache(get_type_hints)
"""Returns the types of a status' fields by name; cached, since it takes a millisecond."""


class Level(enum.Enum):
    """Whether a person should check the node."""

    OK = DiagnosticStatus.OK
    WARN = DiagnosticStatus.WARN
    ERROR = DiagnosticStatus.ERROR


@dataclasses.dataclass(frozen=True)
class NodeStatus:
    """Fields that the status of every node has."""

    state: str = ''
    """The current activity, as a code."""
    reason: str = ''
    """The same with its reason, in a sentence for people."""
    level: Level = Level.OK

    @property
    def urgent(self) -> 'NodeStatus':
        """The status without fields that always change: a change of it is published at once."""
        return self

    def figures(self) -> dict[str, Any]:
        """Return by name all fields that have no field of their own in a DiagnosticStatus."""
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ('reason', 'level')
        }

    def to_message(self, name: str = '') -> DiagnosticStatus:
        """Return the message; ``name`` is the node's name."""
        return DiagnosticStatus(
            level=self.level.value,
            name=name,
            message=self.reason.encode(errors='replace').decode(),
            values=[
                KeyValue(key=key, value=json.dumps(value, allow_nan=False))
                for key, value in self.figures().items()
            ],
        )

    @classmethod
    def from_message(cls: type[Kind], message: DiagnosticStatus) -> Kind:
        """Return the status in a message; MalformedError if it has none of this kind."""
        texts = {pair.key: pair.value for pair in message.values}
        read: dict[str, Any] = {'reason': message.message}
        try:
            read['level'] = Level(message.level)
        except ValueError:
            raise MalformedError(f'level: 0, 1 or 2 is expected, got {message.level!r}') from None
        for name, kind in _kinds(cls).items():
            if name not in read:
                read[name] = _read(name, texts.get(name, ''), kind)
        return cls(**read)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ObstacleStatus(NodeStatus):
    """Fields of a node that takes obstacles at run time."""

    obstacles: int = 0
    """Number of obstacles that are in use."""
    obstacles_refused: int = 0
    """How often one was refused since the node was configured."""
    obstacle_answer: str = ''
    """Code of the last refusal of an obstacle, or ``too_fast``; empty: there was none."""
    obstacle_text: str = ''
    """The same in a sentence for people."""


@dataclasses.dataclass(frozen=True)
class DeploymentStatus(ObstacleStatus):
    """
    The status of policy_node.

    ``state`` is the code of a ``Status`` while the node is active, else one of
    ``IDLE_STATES``. Positions are in ``frame``, the arm's base frame.
    """

    frame: str = ''
    """Empty, like all fields that policy and robot determine, until the node is configured."""
    output: str = ''
    controller: str = ''
    workspace: Box | None = None
    """Box in which goals are accepted."""
    box: Box | None = None
    """Box in which the tool is kept."""
    threshold: float | None = None
    """Distance from the goal that counts as reached [m]."""
    speed_cap: float | None = None
    """Largest speed of the tool [m/s]."""
    stopped: bool = False
    """Whether a stop is latched."""
    goals_from: int = 0
    """Identifies the last stop, clear or activation: goals from before it do not count."""
    moving: bool = False
    """Whether the arm is being commanded, also while it holds still at its goal."""
    goal: Point | None = None
    """The goal of the tool; None if there is none."""
    distance: float | None = None
    """Distance of the tool from its goal [m]; None without a goal or a joint state."""
    reached: bool = False
    nearest: Nearest | None = None
    """While the arm is commanded: the two parts with the least room to their clearance. None:
    there are none that the next commands could bring too close. Negative: they overlap."""
    last_drop: str = ''
    """Code of the reason for which the last goal was dropped; empty if none was."""
    accepted: int = 0
    refused: int = 0
    """Numbers of goals accepted and refused since the node was configured."""
    accepted_goal: Point | None = None
    """The last goal that was accepted."""
    answer: str = ''
    """Answer to the last goal: ``ACCEPTED``, or the code of its refusal."""
    answer_text: str = ''
    """The same in a sentence for people."""
    answered_position: Point | None = None
    answered_frame: str = ''
    """That goal as it was received; the position is None if it was not finite."""

    @property
    def is_active(self) -> bool:
        """Whether the node is active; whether it takes goals now depends on ``state``."""
        return bool(self.state) and self.state not in IDLE_STATES

    @property
    def answers(self) -> int:
        """Number of goals that were answered."""
        return self.accepted + self.refused

    @property
    def urgent(self) -> 'DeploymentStatus':
        """The status without distances."""
        return dataclasses.replace(self, distance=None, nearest=None)


@dataclasses.dataclass(frozen=True)
class TrainingStatus(ObstacleStatus):
    """
    The status of train_node.

    ``state`` is ``starting``, ``warm-up``, ``collecting``, ``model``, ``learning``,
    ``evaluating``, or ``waiting_for_arm``.
    """

    frame: str = ''
    workspace: Box | None = None
    """Box from which goals are drawn; for goals with two entries, at height 0."""
    unit: str = ''
    """Unit of goals."""
    steps: int = 0
    most_steps: int = 0
    epoch: int = 0
    """Evaluations done."""
    updates: int = 0
    success_rate: float | None = None
    """Success rate of the last evaluation."""
    seconds_left: float | None = None
    """Time until all steps are used up, at the pace so far [s]."""
    folder: str = ''
    arm: str = ''
    """In real time: what keeps the robot from moving, as the ``state`` of a deployment."""
    stopped: bool = False
    """Whether a stop is latched."""
    box: Box | None = None
    """In real time: where the tool is kept."""
    speed_cap: float | None = None
    """In real time: of the tool [m/s]."""
    nearest: Nearest | None = None
    """In real time: as that of a deployment."""
    ended_by: str = ''
    """In real time: code of the stop that ended the run, as the ``state`` of a deployment."""


@dataclasses.dataclass(frozen=True)
class SimulationStatus(ObstacleStatus):
    """The status of sim_node; ``state`` is ``running`` or ``paused``."""

    arm: str = ''
    """Name of the task, or of the robot."""
    stepping: str = ''
    commands: str = ''
    """Kind of the commands it takes."""
    life: int = 0
    """Identifies this start of the node: stamp of its first joint state [ns]."""
    resets: int = 0
    """Number of resets since this start."""
    seed: int = -1
    """Seed of the last reset; -1: none."""
    reset_stamp: int = 0
    """Stamp of the first joint state after the last reset [ns]."""
    no_forces: str = ''
    """Why the arm passes through obstacles; empty: forces and contacts are simulated."""
    contacts: int | None = None
    """Number of contacts, deeper than 1 mm, of the arm with itself or obstacles since a reset."""
    deepest_contact: float | None = None
    """Largest depth of a contact since a reset [m]."""
    contact_between: str = ''
    """The two bodies of that contact, for people."""
    randomise: float = 0.0
    """Factor of the ranges that the plant is drawn from; 0: it is the nominal one."""
    tracker: str = ''
    """With a measured pose of the tool: what differs from the model, or ``nothing``."""
    robot_file: str = ''
    """First digits of a digest of the robot file's content; empty: the arm is that of a task."""
    delay: float = 0.0
    """Delay of commands [s]."""
    lag: float = 0.0
    """Time constant of the joints' lag [s]."""


@dataclasses.dataclass(frozen=True)
class ViewStatus(NodeStatus):
    """The status of view_node."""

    address: str = ''
    """Address of the page, without its token."""
    browsers: int = 0


class StatusPublisher:
    """Publishes what ``make_status`` returns: periodically, and after urgent changes."""

    def __init__(
        self,
        node: Node,
        make_status: Callable[[], NodeStatus],
        period: float = 1.0,
        check: float | None = None,
    ) -> None:
        """Publish every ``period`` [s], and check for changes every ``check`` [s], if given."""
        self._make_status, self._period = make_status, period
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._lock = threading.Lock()
        self._last, self._at = NodeStatus(), -math.inf
        self._publisher = node.create_publisher(DiagnosticStatus, STATUS, LATCHED)
        node.create_timer(check or period, self._check, clock=STEADY)

    def publish(self) -> None:
        """Publish the status as it is now."""
        with self._lock:  # so that no status is published after a later one
            self._publish(self._make_status())

    def _check(self) -> None:
        with self._lock:
            status = self._make_status()
            if status.urgent != self._last or time.monotonic() >= self._at + self._period:
                self._publish(status)

    def _publish(self, status: NodeStatus) -> None:
        self._last, self._at = status.urgent, time.monotonic()
        self._publisher.publish(status.to_message(self._name))


def subscribe_status(
    node: Node,
    kind: type[Kind],
    owner: str,
    take: Callable[[Kind], None],
    take_time: Callable[[int], None] = lambda _: None,
) -> str:
    """
    Call ``take`` with each status of the node ``owner``; return the topic's full name.

    ``take_time`` is called after it, with the system time [ns] at which the status was sent.
    """

    def read(message: DiagnosticStatus, info: Any) -> None:
        try:
            status = kind.from_message(message)
        except MalformedError as error:
            count_malformed(node, topic, error)
        else:
            take(status)
            take_time(earliest_time(info))

    topic = str(node.resolve_topic_name(f'{owner}/status'))
    node.create_subscription(DiagnosticStatus, topic, cast(Any, read), EVERY)
    return topic


def point_of(position: ArrayLike | None) -> Point | None:
    """Return a position (2,) or (3,) [m] as a Point; None if it is None, or not finite."""
    if position is None or not np.isfinite(position).all():
        return None
    x, y, z = (*np.asarray(position, np.float64).tolist(), 0.0)[:3]
    return x, y, z


def box_of(low: ArrayLike, high: ArrayLike) -> Box | None:
    """Return corners (2,) or (3,) [m] as a Box; None if they are not finite."""
    corners = point_of(low), point_of(high)
    return None if None in corners else cast(Box, corners)


def _read(name: str, text: str, kind: Any) -> Any:
    try:
        return _convert(json.loads(text), kind)
    except (OverflowError, RecursionError, TypeError, ValueError):
        raise MalformedError(f'{name}: a {kind} is expected, got {text[:100]!r}') from None


def _convert(value: Any, kind: Any) -> Any:
    """Return a value as one of the type ``kind``; TypeError or ValueError if it is not one."""
    if get_origin(kind) is types.UnionType:
        kind, _ = get_args(kind)
        return None if value is None else _convert(value, kind)
    if kind in (Point, Box, Nearest):
        kinds = get_args(kind)
        if type(value) is not list or len(value) != len(kinds):
            raise TypeError
        return tuple(map(_convert, value, kinds))
    if kind is float and type(value) in (int, float) and math.isfinite(value):
        return float(value)
    if kind is float or type(value) is not kind:
        raise TypeError
    return value
