"""Where on an arm the trained workspace lies, and which goals it takes."""

from __future__ import annotations

from mher_ros.control.box import read_box
from mher_ros.errors import MherError
from mher_ros.options import OptionError
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['GoalError', 'MARGIN', 'Workspace']

Vector = NDArray[np.float64]

MARGIN = 0.05
"""How far around the workspace the tool may go unless a box is given [m]."""
FARTHEST = 10.0
"""Distance of a workspace's middle from the arm's base beyond which it is a mistake [m]."""
SCALES = (0.1, 10.0)
EDGES = (0.01, 5.0)
"""Shortest and longest edge of a workspace on an arm [m]."""
ON_THE_FACE = 1e-6
"""A goal this far outside is inside, by rounding [m]."""


class GoalError(MherError, ValueError):
    """A goal that is refused; the text says what was expected and what came."""


class Workspace:
    """
    The box of goals that a policy knows, placed in an arm's base frame.

    A point ``p`` of the trained workspace with centre ``c`` is ``origin + scale * (p - c)`` on
    the arm: ``origin`` is the middle of the workspace in the base frame (None: where it was
    trained). The tool is kept inside ``box_low`` and ``box_high``: the ``box`` given, or the
    workspace and ``MARGIN`` around it. A goal must lie both in the trained workspace and in the
    box: that is, inside ``low`` and ``high``.
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
        if not SCALES[0] <= scale <= SCALES[1]:  # refuses NaN, too
            raise OptionError(
                f'workspace.scale must be at least {SCALES[0]} and at most {SCALES[1]}, '
                f'got {scale}'
            )
        self.scale = float(scale)
        """Length on the arm of a trained metre [m]."""
        self._centre = (trained_low + trained_high) / 2.0
        self._origin = self._centre if origin is None else _read_origin(origin)
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
                    f'the box must overlap the workspace {_text(self.low, self.high)}, '
                    f'got {_text(self.box_low, self.box_high)}'
                )
            self.low, self.high = low, high

    def to_arm(self, position: Vector) -> Vector:
        """Return a position (3,) of training in the base frame [m]."""
        return self._origin + self.scale * (position - self._centre)

    def to_policy(self, position: Vector) -> Vector:
        """Return a position (3,) in the base frame as the policy knows it [m]."""
        return self._centre + (position - self._origin) / self.scale

    def velocity_to_arm(self, velocity: Vector) -> Vector:
        """Return a velocity (3,) of training as one of the arm's tool [m/s]."""
        return velocity * self.scale

    def velocity_to_policy(self, velocity: Vector) -> Vector:
        """Return a velocity (3,) of the arm's tool as the policy knows it [m/s]."""
        return velocity / self.scale

    def admit(self, goal: ArrayLike, outside: str = 'reject') -> Vector:
        """
        Return the goal (3,) in the base frame [m] that is taken for ``goal``.

        Outside the workspace or the box it is refused, or moved to the nearest point inside both
        if ``outside`` is ``'project'``. What is not three finite numbers is always refused.
        """
        if outside not in ('reject', 'project'):
            raise OptionError(f'outside takes one of reject, project; got {outside!r}')
        try:
            asked = np.array(goal, np.float64)
        except (TypeError, ValueError):
            raise GoalError(f'a goal of three numbers is expected, got {goal!r}') from None
        if asked.shape != (3,) or not np.isfinite(asked).all():
            raise GoalError(f'a goal of three finite numbers is expected, got {asked.tolist()}')
        inside = np.clip(asked, self.low, self.high)
        if outside == 'reject' and np.abs(inside - asked).max() > ON_THE_FACE:
            raise GoalError(
                'a goal inside the workspace and the box is expected, that is '
                f'{_text(self.low, self.high)}; got {_point(asked)}'
            )
        return inside


def _read_origin(origin: ArrayLike) -> Vector:
    try:
        vector = np.array(origin, np.float64)
    except (TypeError, ValueError):
        vector = np.array(())
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise OptionError(f'workspace.origin takes three finite numbers, got {origin!r}')
    if np.abs(vector).max() > FARTHEST:
        raise OptionError(
            f'workspace.origin must lie within {FARTHEST} m of the base frame on every axis, '
            f'got {vector.tolist()}'
        )
    return vector


def _text(low: Vector, high: Vector) -> str:
    return f'{_point(low)} to {_point(high)}'


def _point(position: Vector) -> str:
    return '(' + ', '.join(f'{part:.3f}' for part in position) + ')'
