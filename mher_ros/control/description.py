"""Links and joints of an arm, whatever kind of file describes them."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import math

from mher_ros.errors import MherError
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    'after',
    'Description',
    'DescriptionError',
    'Joint',
    'Pose',
    'pose_of',
    'some',
    'turned',
]

Pose = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Position (3,) [m] and orientation (4,) (w, x, y, z)."""

MOST_NAMES = 100
"""In a sentence."""
MOST_JOINTS = 500
"""Fixed ones counted; a robot with two arms on wheels has 220."""


class DescriptionError(MherError, ValueError):
    """A description that cannot be used; the message says what was expected and what came."""


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """What joins a link to its parent."""

    name: str
    kind: str
    """hinge, slide or fixed; an arm has no other ones."""
    parent: str
    child: str
    origin: Pose
    """Pose of the child in the parent's frame where the joint is at 0."""
    axis: NDArray[np.float64]
    """Of unit length, in the child's frame (3,)."""
    lower: float = -math.inf
    upper: float = math.inf
    """[rad] or [m]; both infinite: nothing limits it."""
    velocity: float = math.inf
    """Greatest speed [rad/s] or [m/s]; infinite: untold."""
    acceleration: float = math.nan
    """Greatest change of its speed [rad/s^2] or [m/s^2]; NaN: not known, as in URDF and MJCF."""
    mimics: str = ''
    """Joint that it follows, if any."""


class Description:
    """A tree of links."""

    def __init__(self, root: str, joints: Sequence[Joint]) -> None:
        if len(joints) > MOST_JOINTS:
            raise DescriptionError(
                f'a model of at most {MOST_JOINTS} joints is expected, got {len(joints)}'
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
        Return how to get from the link ``base`` to the link ``tool``.

        These are the pose, in ``base``, of the link that both are below, and the joints from there
        to ``tool``. Between ``base`` and that link there may be fixed joints only.
        """
        up, down = self._to_root(base), self._to_root(tool)
        while up and down and up[-1] is down[-1]:
            up.pop()
            down.pop()
        pose = pose_of()
        for joint in up:
            if joint.kind != 'fixed':
                raise DescriptionError(
                    f'a base frame that stands still where the arm begins is expected; {base!r} '
                    f'is moved by {joint.name}, which does not move the tool'
                )
            pose = after(pose, _inverse(joint.origin))
        return pose, down[::-1]

    def _check_tree(self) -> None:
        """Refuse links that are below each other in a circle."""
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
    """Return names for a sentence: of a great many, the first ones."""
    shown = [name[:80] for name in names[:MOST_NAMES]]
    more = [f'{len(names) - MOST_NAMES} more'] if len(names) > MOST_NAMES else []
    return ', '.join([*shown, *more]) or 'none'


def pose_of(xyz: ArrayLike = (0.0, 0.0, 0.0), rpy: ArrayLike = (0.0, 0.0, 0.0)) -> Pose:
    """Return the pose at ``xyz`` [m], turned about the fixed axes x, y and z by ``rpy`` [rad]."""
    pose: Pose = (np.array(xyz, np.float64), np.array((1.0, 0.0, 0.0, 0.0)))
    for axis, angle in zip(np.eye(3)[::-1], np.asarray(rpy, np.float64)[::-1], strict=True):
        pose = after(pose, (np.zeros(3), turned(axis, angle)))
    return pose


def after(first: Pose, second: Pose) -> Pose:
    """Return the pose that ``second`` has where it is given in the frame of ``first``."""
    position, orientation = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(position, orientation, *first, *second)
    return position, orientation


def turned(axis: ArrayLike, angle: float) -> NDArray[np.float64]:
    """Return the orientation (w, x, y, z) after a turn about an axis (3,) [rad]."""
    orientation = np.empty(4)
    mujoco.mju_axisAngle2Quat(orientation, np.asarray(axis, np.float64), angle)
    return orientation


def _inverse(pose: Pose) -> Pose:
    position, orientation = np.empty(3), np.empty(4)
    mujoco.mju_negPose(position, orientation, *pose)
    return position, orientation
