"""What the messages about obstacles have in common: shapes in a frame, and changes of them."""

from collections.abc import Sequence
import dataclasses
import hashlib
import math
from typing import Any, NamedTuple

from mher_ros.control.obstacle_tracker import ObstacleError
from mher_ros.interface import Vector
from mher_ros.robots.description import Pose
from mher_ros.robots.scene import FARTHEST, LARGEST, SMALLEST, Vector3
from mher_ros.robots.solids import hull_of, shape_solid, Solid
from mher_ros.robots.workspace import Refusal
from mher_ros.ros.common.geometry import numbers_of
import mujoco
import numpy as np

LONGEST_NAME = 100  # characters of a namespace, or of the name of an object
MOST_POINTS = 5000  # vertices of a mesh
NO_ROTATION = 1e-6  # norm of a quaternion that RViz and MoveIt take for no rotation
FLAT = 1e-4  # by which a mesh without a volume is made thicker on both sides [m]
NO_SIZE = (0.0, 0.0, 0.0)
NOWHERE: Pose = np.zeros(3), np.array((1.0, 0.0, 0.0, 0.0))
"""The pose of a frame in itself."""


class Shape(NamedTuple):
    """A solid in a frame."""

    kind: str
    """``box``, ``sphere``, ``cylinder``, or ``hull``: the convex hull of points."""
    size: Vector3
    """As that of an ``Obstacle``; unused for a hull."""
    pose: Pose
    hull: Solid | None = None
    """The solid of a hull, before it is moved by ``pose``."""

    @property
    def solid(self) -> Solid:
        """The solid in the frame."""
        bare = shape_solid(self.kind, self.size) if self.hull is None else self.hull
        return bare.at(self.pose)

    def moved(self, rotation: Vector, translation: Vector) -> 'Shape':
        """Return the shape in a frame in which its own one is turned (3, 3) and moved (3,)."""
        frame = np.empty(4)
        mujoco.mju_mat2Quat(frame, np.ascontiguousarray(rotation).ravel())
        return self.under((translation, frame))

    def under(self, pose: Pose) -> 'Shape':
        """Return the shape in a frame in which its own one has this pose."""
        position, orientation = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(position, orientation, *pose, *self.pose)
        return self._replace(pose=(position, orientation))


@dataclasses.dataclass(frozen=True)
class Change:
    """
    An obstacle that is new or changed.

    Without shapes and error it is removed. Without a name, all obstacles of its source are.
    """

    source: str
    """The kind of message."""
    name: str = ''
    shapes: tuple[Shape, ...] = ()
    """In the frame of ``header``."""
    header: Any = None
    error: ObstacleError | None = None
    """Why it cannot be used."""
    is_solid: bool = True
    """False: it cannot be used, but it is no obstacle either."""
    is_locked: bool = False
    """Whether it moves with its frame."""
    lifetime: float = math.inf
    """Time after which it is removed [s]."""
    moves: bool = False
    """Whether it moves, even if it has not yet."""
    rests: bool = False
    """Whether it rests until the next message, even if its place is another one."""
    kept: frozenset[str] = frozenset()
    """Those that are not removed: the same message has them again."""

    @property
    def is_removal(self) -> bool:
        """Whether an obstacle, or all of them, are removed."""
        return not self.shapes and self.error is None


def short_name(name: str) -> str:
    """Return a name of at most ``LONGEST_NAME`` characters; different ones stay different."""
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:32]
    return f'{name[: LONGEST_NAME - len(digest) - 1]}~{digest}'


def pose_in(message: Any) -> Pose:
    """Return the pose of a ``geometry_msgs/Pose``; ObstacleError if it is not finite."""
    *position, w, x, y, z = numbers_of(message.position, message.orientation)
    size = math.hypot(w, x, y, z)
    check_finite([*position, w, x, y, z, size])
    turn = np.array((w, x, y, z)) / size if size > NO_ROTATION else NOWHERE[1]
    return np.array(position), turn


def checked_shape(kind: str, size: Vector3, pose: Pose) -> Shape:
    """Return a shape; ObstacleError if it is too small or too large."""
    count = {'box': 3, 'sphere': 1, 'cylinder': 2}[kind]
    check_finite(size)
    if not all(SMALLEST <= edge <= LARGEST for edge in size[:count]):
        raise ObstacleError(
            f'{kind}: {SMALLEST:g} to {LARGEST:g} m are expected, got {list(size[:count])}',
            Refusal.BAD_SIZE,
        )
    return Shape(kind, size, pose)


def hull_shape(points: Vector, pose: Pose) -> Shape:
    """Return the convex hull of points (m, 3) [m]; ObstacleError if it cannot be used."""
    if not 3 <= len(points) <= MOST_POINTS:
        raise ObstacleError(
            f'a mesh of 3 to {MOST_POINTS} vertices is expected, got {len(points)}',
            Refusal.BAD_SIZE,
        )
    check_finite(points)
    edges = np.ptp(points, axis=0)
    if not SMALLEST <= edges.max() <= LARGEST:
        raise ObstacleError(
            f'a mesh of {SMALLEST:g} to {LARGEST:g} m is expected, got {edges.tolist()}',
            Refusal.BAD_SIZE,
        )
    solid = hull_of(points)
    if solid.volume < FLAT**3:
        shifts = FLAT * np.vstack((np.eye(3), -np.eye(3)))
        solid = hull_of((solid.vertices[:, None] + shifts).reshape(-1, 3))
    return Shape('hull', NO_SIZE, pose, solid)


def check_finite(numbers: Sequence[float] | Vector) -> None:
    """Raise ObstacleError unless all numbers are finite."""
    if not np.isfinite(numbers).all():
        raise ObstacleError(
            f'finite numbers are expected, got {np.ravel(numbers)[:10].tolist()}',
            Refusal.BAD_MESSAGE,
        )


def check_place(shape: Shape) -> None:
    """Raise ObstacleError if a shape, given in the base frame, is too far away."""
    if not np.abs(shape.pose[0]).max() <= FARTHEST:
        raise ObstacleError(
            f'a place within {FARTHEST:g} m of the base frame is expected, got '
            f'{shape.pose[0].tolist()}',
            Refusal.BAD_SIZE,
        )
