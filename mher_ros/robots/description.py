"""Links and joints of an arm, from a URDF or an MJCF file."""

from collections.abc import Sequence
import dataclasses
import math

from mher_ros.errors import MherError
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

Pose = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Position (3,) [m] and orientation (4,) (w, x, y, z)."""

MAX_NAMES = 100  # in an error message
MAX_JOINTS = 500  # including fixed ones; a mobile robot with two arms has 220


class DescriptionError(MherError, ValueError):
    """A description cannot be used; the message says what was expected and what was given."""


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """A joint between a link and its parent."""

    name: str
    kind: str
    """hinge, slide or fixed; an arm has no other kinds."""
    parent: str
    child: str
    origin: Pose
    """Pose of the child in the parent's frame for joint position 0."""
    axis: NDArray[np.float64]
    """Unit vector in the child's frame (3,)."""
    lower: float = -math.inf
    upper: float = math.inf
    """[rad] or [m]; both infinite: no limits."""
    velocity: float = math.inf
    """Velocity limit [rad/s] or [m/s]; infinite: not given."""
    acceleration: float = math.nan
    """Acceleration limit [rad/s^2] or [m/s^2]; NaN: not known, as in URDF and MJCF."""
    effort: float = math.inf
    """Effort limit [N m] or [N], for simulations; infinite: not given."""
    mimics: str = ''
    """Joint that it mimics, if any."""


class Description:
    """A tree of links."""

    def __init__(self, root: str, joints: Sequence[Joint]) -> None:
        if len(joints) > MAX_JOINTS:
            raise DescriptionError(
                f'a model of at most {MAX_JOINTS} joints is expected, got {len(joints)}'
            )
        self.root, self.joints = root, tuple(joints)
        self._above = {joint.child: joint for joint in joints}
        self.links = (root, *self._above)
        """Names of all links."""
        twice = [joint.child for joint in joints if self._above[joint.child] is not joint]
        if twice:
            raise DescriptionError(f'a link has one parent; {some(twice)} have more')
        self._check_tree()

    def chain(self, base: str, tool: str) -> tuple[Pose, list[Joint]]:
        """
        Return the chain from the link ``base`` to the link ``tool``.

        The result is the pose, in ``base``, of their nearest common ancestor, and the joints from
        there to ``tool``. Between ``base`` and that link there may only be fixed joints.
        """
        up, down = self._to_root(base), self._to_root(tool)
        while up and down and up[-1] is down[-1]:
            up.pop()
            down.pop()
        pose = pose_of()
        for joint in up:
            if joint.kind != 'fixed':
                raise DescriptionError(
                    f"a base frame that is fixed to the arm's first link is expected; {base!r} is "
                    f'moved by {joint.name}, which does not move the tool'
                )
            pose = after(pose, inverse(joint.origin))
        return pose, down[::-1]

    def _check_tree(self) -> None:
        """Raise DescriptionError if links form a cycle."""
        connected = {self.root}
        for link in self.links:
            path: dict[str, None] = {}
            while link not in connected:
                if link in path:
                    raise DescriptionError(
                        f'a tree of links is expected; {link!r} is below itself'
                    )
                path[link] = None
                link = self._above[link].parent
            connected.update(path)

    def _to_root(self, link: str) -> list[Joint]:
        if link not in self.links:
            raise DescriptionError(
                f'the model has no frame {link!r}; it has {some(sorted(self.links))}'
            )
        joints: list[Joint] = []
        while link != self.root:
            joints.append(self._above[link])
            link = joints[-1].parent
        return joints


def some(names: Sequence[str]) -> str:
    """Return names for an error message; of very many, the first ones."""
    shown = [name[:80] for name in names[:MAX_NAMES]]
    more = [f'{len(names) - MAX_NAMES} more'] if len(names) > MAX_NAMES else []
    return ', '.join([*shown, *more]) or 'none'


def pose_of(xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
    """Return the pose at ``xyz`` [m], rotated about the fixed axes x, y and z by ``rpy`` [rad]."""
    pose: Pose = (np.array(xyz, np.float64), np.array((1.0, 0.0, 0.0, 0.0)))
    for axis, angle in zip(np.eye(3)[::-1], np.asarray(rpy, np.float64)[::-1], strict=True):
        pose = after(pose, (np.zeros(3), turned(axis, angle)))
    return pose


def after(first: Pose, second: Pose) -> Pose:
    """Return the composition of two poses: ``second`` is given in the frame of ``first``."""
    position, orientation = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(position, orientation, *first, *second)
    return position, orientation


def turned(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """Return the orientation (w, x, y, z) of a rotation by ``angle`` [rad] about an axis (3,)."""
    orientation = np.empty(4)
    mujoco.mju_axisAngle2Quat(orientation, np.asarray(axis, np.float64), angle)
    return orientation


def inverse(pose: Pose) -> Pose:
    """Return the inverse of a pose."""
    position, orientation = np.empty(3), np.empty(4)
    mujoco.mju_negPose(position, orientation, *pose)
    return position, orientation
