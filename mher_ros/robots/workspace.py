"""The trained workspace in the base frame of an arm, and the goals that are accepted."""

import enum

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.options import OptionError
from mher_ros.robots.robot import Robot
import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]

REACH = 0.15  # half of the edge of the box of goals of joint actions, before its scale [m]
MARGIN = 0.05  # around the workspace, where the tool may be unless a box is given [m]
FARTHEST = 10.0  # largest distance of a workspace from the base, on each axis [m]
EDGES = (0.01, 5.0)  # shortest and longest edge of a workspace on an arm [m]
ON_THE_FACE = 1e-6  # rounding error up to which a goal is inside [m]


class Refusal(str, enum.Enum):
    """Reasons to refuse a goal, besides the codes of ``Status``, or an obstacle."""

    BAD_MESSAGE = 'bad_message'
    BAD_SIZE = 'bad_size'
    """Size or place of an obstacle."""
    FRAME_UNKNOWN = 'frame_unknown'
    INSIDE_OBSTACLE = 'inside_obstacle'
    IN_COLLISION = 'in_collision'
    """The arm would touch itself or an obstacle at the goal."""
    NOT_ACTIVE = 'not_active'
    NOT_RECEIVED = 'not_received'
    """The planning scene, which has obstacles."""
    OUT_OF_REACH = 'out_of_reach'
    OUTSIDE_WORKSPACE = 'outside_workspace'
    SUPERSEDED = 'superseded'
    """Another goal was received."""
    TOO_FAST = 'too_fast'
    """An obstacle; it is not refused."""
    TOO_MANY = 'too_many'
    """Obstacles."""
    UNSUPPORTED = 'unsupported'
    """Type of an obstacle."""


class GoalError(MherError, ValueError):
    """A goal was refused or dropped; the text says what was expected and what was given."""

    def __init__(self, text: str, code: str) -> None:
        """``code``: a ``Refusal``, or the code of a ``Status``."""
        super().__init__(text)
        self.code = str(code.value if isinstance(code, enum.Enum) else code)


class Workspace:
    """
    The box of goals that a policy was trained with, placed in an arm's base frame.

    A point ``p`` of the trained workspace with centre ``c`` is ``origin + scale * (p - c)`` on
    the arm: ``origin`` is the centre of the workspace in the base frame (None: as in training).
    The tool is kept between ``box_low`` and ``box_high``: the given ``box``, or the workspace and
    ``MARGIN`` around it. A goal must be both in the trained workspace and in the box, that is,
    between ``low`` and ``high``.
    """

    def __init__(
        self,
        goal_low: ArrayLike,
        goal_high: ArrayLike,
        origin: ArrayLike | None = None,
        scale: float = 1.0,
        box: tuple[ArrayLike, ArrayLike] | None = None,
    ) -> None:
        trained_low, trained_high = read_box(goal_low, goal_high, 'the trained workspace')
        self.scale = float(scale)
        """Length on the arm over length in training."""
        self._centre = (trained_low + trained_high) / 2.0
        self._origin = self._centre if origin is None else _read_point('workspace.origin', origin)
        if origin is not None and np.abs(self._origin).max() > FARTHEST:
            raise OptionError(
                f'workspace.origin must lie within {FARTHEST} m of the base frame on every axis, '
                f'got {self._origin.tolist()}'
            )
        self.low, self.high = self.to_arm(trained_low), self.to_arm(trained_high)
        """Corners (3,) of the box of goals in the base frame [m]."""
        edges = self.high - self.low
        if not ((edges >= EDGES[0]) & (edges <= EDGES[1])).all():
            raise OptionError(
                f'the edges of a workspace on an arm must be {EDGES[0]} to {EDGES[1]} m long, '
                f'got {edges.tolist()}'
            )
        self.box_low, self.box_high = self.low - MARGIN, self.high + MARGIN
        """Corners (3,) of the box that the tool is kept in [m]."""
        if box is not None:
            self.box_low, self.box_high = read_box(*box)
            low = np.maximum(self.low, self.box_low)
            high = np.minimum(self.high, self.box_high)
            if not (low < high).all():
                raise OptionError(
                    f'the box must overlap the workspace {_box_text(self.low, self.high)}, '
                    f'got {_box_text(self.box_low, self.box_high)}'
                )
            self.low, self.high = low, high

    def to_arm(self, position: Vector) -> Vector:
        """Return a position (3,) of training in the base frame [m]."""
        return self._origin + self.scale * (position - self._centre)

    def to_policy(self, position: Vector) -> Vector:
        """Return a position (3,) in the base frame as one of training [m]."""
        return self._centre + (position - self._origin) / self.scale

    def velocity_to_policy(self, velocity: Vector) -> Vector:
        """Return a velocity (3,) of the arm's tool as one of training [m/s]."""
        return velocity / self.scale

    def admit(self, goal: ArrayLike, outside: str = 'reject') -> Vector:
        """
        Return the goal (3,) in the base frame [m] that ``goal`` is accepted as.

        A goal outside is refused, or moved to the nearest point inside if ``outside`` is
        ``'project'``. Anything but three finite numbers is always refused.
        """
        if outside not in ('reject', 'project'):
            raise OptionError(f'outside takes one of reject, project; got {outside!r}')
        try:
            asked = _read_point('goal', goal)
        except OptionError as error:
            raise GoalError(str(error), Refusal.BAD_MESSAGE) from None
        inside = np.clip(asked, self.low, self.high)
        if outside == 'reject' and np.abs(inside - asked).max() > ON_THE_FACE:
            raise GoalError(
                'a goal inside the workspace and the box is expected, that is '
                f'{_box_text(self.low, self.high)}; got {point_text(asked)}',
                Refusal.OUTSIDE_WORKSPACE,
            )
        return inside


def place_workspace(interface: TaskInterface, robot: Robot) -> Workspace:
    """
    Return the workspace of a policy where the robot file places it.

    On the arm of training it stays where it was. Where the pose of the tool is measured it is in
    that frame, in which the robot file knows no box.
    """
    if interface.is_tracked:
        return Workspace(interface.goal_low, interface.goal_high)
    if is_trained_on(interface, robot):
        return Workspace(interface.goal_low, interface.goal_high, box=robot.box)
    place = robot.workspace
    return Workspace(interface.goal_low, interface.goal_high, place.origin, place.scale, robot.box)


def is_trained_on(interface: TaskInterface, robot: Robot) -> bool:
    """Return whether a policy was trained on this robot, or fits no other one."""
    trained = interface.arm
    return trained is not None and (interface.is_for_one_arm or trained.robot == robot.name)


def reach_workspace(robot: Robot, home: Vector) -> Workspace:
    """
    Return the workspace of joint actions, in the base frame.

    ``home`` (3,) [m]: position of the tool at home, its centre unless the robot file has one.
    """
    place = robot.workspace
    if place.origin is None and not robot.home:
        raise OptionError(
            f'robot {robot.name}: workspace.origin, or home, is needed to place the goals'
        )
    centre = np.array(place.origin or home)
    return Workspace(centre - REACH, centre + REACH, scale=place.scale, box=robot.box)


def read_box(low: ArrayLike, high: ArrayLike, name: str = 'box') -> tuple[Vector, Vector]:
    """Return the corners (3,) of a box; OptionError, with its name, if they are not valid."""
    corners = _read_point(f'{name}.low', low), _read_point(f'{name}.high', high)
    if not (corners[0] < corners[1]).all():
        raise OptionError(
            f'{name}.low must lie below {name}.high on every axis, '
            f'got {corners[0].tolist()} and {corners[1].tolist()}'
        )
    return corners


def point_text(position: ArrayLike) -> str:
    """Return a position (3,) for messages, to the millimetre."""
    return '(' + ', '.join(f'{part:.3f}' for part in np.asarray(position)) + ')'


def _read_point(name: str, values: ArrayLike) -> Vector:
    try:
        point = np.array(values, np.float64)
    except (TypeError, ValueError):
        point = np.array(())
    if point.shape != (3,) or not np.isfinite(point).all():
        raise OptionError(f'{name} takes three finite numbers, got {values!r}')
    return point


def _box_text(low: Vector, high: Vector) -> str:
    return f'{point_text(low)} to {point_text(high)}'
