"""A point in a square, with or without walls."""

from collections.abc import Sequence
import dataclasses
import functools
from typing import Any, ClassVar

from mher_ros.interface import Field, TaskInterface
from mher_ros.options import option
from mher_ros.tasks.task import Array, Task, TaskOptions
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Wall = tuple[float, float, float, float]  # a rectangle: x_low, x_high, y_low, y_high

POINT_RADIUS = 0.03  # radius of the point, as a share of half the square's side
WALL_HEIGHT = 0.1  # the same
FROM_ABOVE = {'lookat': (0.0, 0.0, 0.0), 'azimuth': 90.0, 'elevation': -90.0}


@dataclasses.dataclass(frozen=True)
class Point2DLargeOptions(TaskOptions):
    box: float = option(
        5.0, 'half side of the square: 5 in the paper, 4 in its code', low=1.0, high=100.0
    )


class Point2D(Task):
    """Actions change the position, which stays inside the square and outside the walls."""

    name: ClassVar[str]
    joint_names = ('x', 'y')
    random_start = True
    walls: ClassVar[tuple[Wall, ...]] = ()  # forbidden for the centre of the point

    @property
    def half_side(self) -> float:
        return getattr(self.options, 'box', 4.0)

    def _declare(self) -> TaskInterface:
        box = self.half_side
        return self._interface(
            task=self.name,
            observation=(Field('position_x', '1'), Field('position_y', '1')),
            goal=(Field('goal_x', '1'), Field('goal_y', '1')),
            action=(Field('displacement_x', '1'), Field('displacement_y', '1')),
            action_meaning='displacement',
            frame='square',
            control_period=0.1,
            goal_low=(-box, -box),
            goal_high=(box, box),
            achieved_index=(0, 1),
        )

    def _reset_state(self, rng: Generator) -> None:
        self._position = self._sample_goal(rng)

    def _sample_goal(self, rng: Generator) -> Array:
        while True:
            x, y = position = rng.uniform(-self.half_side, self.half_side, 2)
            if not any(x0 < x < x1 and y0 < y < y1 for x0, x1, y0, y1 in self.walls):
                return position

    def move(self, action: NDArray[np.float32]) -> None:
        self._position = self._moved(self._position[None], action[None])[0]

    @classmethod
    def step_batch(cls, tasks: Sequence[Any], actions: NDArray[np.float32]) -> Array:
        first = tasks[0]
        starts = np.stack([task._position for task in tasks])
        ends = first._moved(starts, first.checked_action(actions, len(tasks)))
        for task, end in zip(tasks, ends, strict=True):
            task._position = end.copy()
            task._steps_left -= 1
        return ends

    def _moved(self, starts: Array, actions: NDArray[np.float32]) -> Array:
        """Return the positions (B, 2) after actions (B, 2)."""
        box = self.half_side
        ends = np.clip(starts + actions, -box, box)
        for wall in self.walls:
            _slide_along(starts, ends, wall)
        return ends

    def joint_state(self) -> tuple[Array, Array]:
        return self._position.copy(), np.zeros(2)

    def tool_pose(self) -> tuple[Array, Array]:
        return np.array((*self._position, 0.0)), np.array((1.0, 0.0, 0.0, 0.0))

    def _observation(self, positions: Array, velocities: Array) -> Array:
        return positions.copy()

    def scene(self) -> tuple[mujoco.MjModel, mujoco.MjData, dict[str, Any]]:
        model, data = self._drawn
        data.qpos[:] = self._position
        mujoco.mj_kinematics(model, data)
        return model, data, {**FROM_ABOVE, 'distance': 2.6 * self.half_side}

    @functools.cached_property
    def _drawn(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        model = _square(self.half_side, self.walls)
        return model, mujoco.MjData(model)


def _square(side: float, walls: Sequence[Wall]) -> mujoco.MjModel:
    """Return the model of a square of half side ``side``: joints x and y move a ball on it."""
    spec = mujoco.MjSpec()
    spec.modelname = 'point2d'
    light = spec.visual.headlight  # even light: colours are as given
    light.ambient, light.diffuse, light.specular = np.ones(3), np.zeros(3), np.zeros(3)
    plane, grey = mujoco.mjtGeom.mjGEOM_PLANE, (0.9, 0.9, 0.9, 1.0)
    spec.worldbody.add_geom(name='floor', type=plane, size=(side, side, 1.0), rgba=grey)
    height = WALL_HEIGHT * side
    for number, (x_low, x_high, y_low, y_high) in enumerate(walls):
        # Walls extend beyond the square; the rest is not shown.
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
        slide = mujoco.mjtJoint.mjJNT_SLIDE
        point.add_joint(name=name, type=slide, axis=axis, limited=True, range=(-side, side))
    point.add_geom(
        name='point',
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=(POINT_RADIUS * side, 0.0, 0.0),
        rgba=(0.16, 0.31, 0.78, 1.0),
    )
    return spec.compile()


def _slide_along(starts: Array, ends: Array, wall: Wall) -> None:
    """Limit the coordinate of ``ends`` (B, 2) that would enter the wall to the wall's face."""
    low, high = np.array(wall).reshape(2, 2).T
    motion = ends - starts
    forward, still = motion > 0.0, motion == 0.0
    near, far = np.where(forward, low, high), np.where(forward, high, low)
    # Fractions of the motion at which each coordinate enters and leaves the wall's range. A
    # constant coordinate is always or never inside.
    step = np.where(still, 1.0, motion)
    between = (low < starts) & (starts < high)
    with np.errstate(over='ignore'):
        enters = np.where(still, np.where(between, -np.inf, np.inf), (near - starts) / step)
        leaves = np.where(still, np.inf, (far - starts) / step)
    entered, left = enters.max(-1), np.minimum(leaves.min(-1), 1.0)
    rows = np.flatnonzero((entered >= 0.0) & (entered < left))
    axes = enters[rows].argmax(-1)
    ends[rows, axes] = near[rows, axes]


class Point2DLarge(Point2D):
    name = 'point2d_large'
    summary = 'a point in an open square'
    default_options = Point2DLargeOptions()
    arm_options = ('box',)


class Point2DFourRoom(Point2D):
    """Four rooms with doors; the walls include the radius of the point."""

    name = 'point2d_four_room'
    summary = 'a point in four rooms with doors'
    default_options = TaskOptions()
    walls = (
        (-5.6, -3.4, -0.8, 0.8),
        (-1.48, 1.48, -0.8, 0.8),
        (3.4, 5.6, -0.8, 0.8),
        (-0.8, 0.8, -5.6, -3.4),
        (-0.8, 0.8, -1.48, 1.48),
        (-0.8, 0.8, 3.4, 5.6),
    )
