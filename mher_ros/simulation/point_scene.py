"""The square of the point2d tasks as a MuJoCo model, so that it can be shown as the arms are."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from mher_ros.tasks.task import Task
import mujoco

__all__ = ['point_scene']

POINT_RADIUS = 0.03
"""Radius of the point, as a share of half the square's side."""
WALL_HEIGHT = 0.1
"""Likewise."""


def point_scene(task: Task) -> mujoco.MjModel:
    """Return a model with the joints ``x`` and ``y``, which move a ball on a walled floor."""
    if not isinstance(task, _Square):
        raise TypeError(f'expected a point2d task, got {type(task).__name__}')
    side = task.half_side
    spec = mujoco.MjSpec()
    spec.modelname = 'point2d'
    spec.worldbody.add_geom(
        name='floor',
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=(side, side, 1.0),
        rgba=(0.9, 0.9, 0.9, 1.0),
    )
    height = WALL_HEIGHT * side
    for number, (x_low, x_high, y_low, y_high) in enumerate(task.walls):
        # Walls go on beyond the square; what is outside of it says nothing.
        x_low, y_low = max(x_low, -side), max(y_low, -side)
        x_high, y_high = min(x_high, side), min(y_high, side)
        spec.worldbody.add_geom(
            name=f'wall{number}',
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=((x_high - x_low) / 2, (y_high - y_low) / 2, height / 2),
            pos=((x_low + x_high) / 2, (y_low + y_high) / 2, height / 2),
            rgba=(0.5, 0.5, 0.5, 1.0),
        )
    point = spec.worldbody.add_body(name='point')
    for name, axis in (('x', (1.0, 0.0, 0.0)), ('y', (0.0, 1.0, 0.0))):
        point.add_joint(
            name=name,
            type=mujoco.mjtJoint.mjJNT_SLIDE,
            axis=axis,
            limited=True,
            range=(-side, side),
        )
    point.add_geom(
        name='point',
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=(POINT_RADIUS * side, 0.0, 0.0),
        rgba=(0.16, 0.31, 0.78, 1.0),
    )
    return spec.compile()


@runtime_checkable
class _Square(Protocol):
    """What a task on the square tells of it."""

    @property
    def half_side(self) -> float:
        """Half the side of the square."""

    @property
    def walls(self) -> tuple[tuple[float, float, float, float], ...]:
        """Rectangles (x_low, x_high, y_low, y_high)."""
