"""A point in a square, with or without walls."""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
from typing import ClassVar, TYPE_CHECKING

from mher_ros.interface import Field, TaskInterface
from mher_ros.options import option
from mher_ros.tasks.task import Task, TaskOptions
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ['Point2DFourRoom', 'Point2DLarge', 'Point2DLargeOptions']


@dataclasses.dataclass(frozen=True)
class Point2DLargeOptions(TaskOptions):
    """Options of point2d_large."""

    box: float = option(
        5.0, "half the square's side: 5 in the paper, 4 in its code", low=1.0, high=100.0
    )


class _Point2D(Task):
    """Actions add to the position, which is kept inside the square and outside the walls."""

    default_options: ClassVar[TaskOptions]
    name: ClassVar[str]
    joint_names = ('x', 'y')
    random_start = True
    walls: ClassVar[tuple[tuple[float, float, float, float], ...]] = ()
    """Rectangles (x_low, x_high, y_low, y_high) that the point's centre may not enter."""

    @property
    def half_side(self) -> float:
        """Half the side of the square."""
        return 4.0

    def _declare(self) -> TaskInterface:
        box = self.half_side
        position = (Field('position_x', '1'), Field('position_y', '1'))
        return TaskInterface(
            task=self.name,
            observation=position,
            goal=(Field('goal_x', '1'), Field('goal_y', '1')),
            action=(Field('displacement_x', '1'), Field('displacement_y', '1')),
            action_meaning='displacement',
            frame='square',
            control_period=0.1,
            episode_steps=self.options.episode_steps,
            goal_low=(-box, -box),
            goal_high=(box, box),
            success_threshold=self.options.threshold,
            achieved_index=(0, 1),
        )

    def _reset_state(self, rng: np.random.Generator) -> None:
        self._position = self._draw_free(rng)

    def _draw_goal(self, rng: np.random.Generator) -> NDArray[np.float64]:
        return self._draw_free(rng)

    def _draw_free(self, rng: np.random.Generator) -> NDArray[np.float64]:
        while True:
            position = rng.uniform(-self.half_side, self.half_side, 2)
            if not self._blocked(position):
                return position

    def _blocked(self, position: NDArray[np.float64]) -> bool:
        x, y = position
        return any(x0 < x < x1 and y0 < y < y1 for x0, x1, y0, y1 in self.walls)

    def _advance(self, action: NDArray[np.float32]) -> None:
        self._position = self._moved(self._position[None], action[None])[0]

    @classmethod
    def step_together(
        cls, tasks: Sequence[Self], actions: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Move all the points at once."""
        first = tasks[0]
        starts = np.stack([task._position for task in tasks])
        ends = first._moved(starts, first.checked_action(actions, len(tasks)))
        for task, end in zip(tasks, ends, strict=True):
            task._position = end.copy()
            task._steps_left -= 1
        return ends

    def _moved(
        self, starts: NDArray[np.float64], actions: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """Return where actions (B, 2) lead from positions (B, 2)."""
        box = self.half_side
        ends = np.clip(starts + actions, -box, box)
        for wall in self.walls:
            _slide_along(starts, ends, wall)
        return ends

    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the position; the point stops after each step."""
        return self._position.copy(), np.zeros(2)

    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the point's place on the floor."""
        return np.array((*self._position, 0.0)), np.array((1.0, 0.0, 0.0, 0.0))

    def _observation(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return positions.copy()

    def render(self) -> NDArray[np.uint8]:
        """Draw the square from above."""
        from mher_ros.tasks.rendering import draw_square

        return draw_square(self.half_side, self.walls, self._position, self.goal, self.interface)


def _slide_along(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    wall: tuple[float, float, float, float],
) -> None:
    """Hold the coordinate of ``ends`` (B, 2) that the wall stands in the way of at its face."""
    low, high = np.array(wall).reshape(2, 2).T
    way = ends - starts
    forward, still = way > 0.0, way == 0.0
    near, far = np.where(forward, low, high), np.where(forward, high, low)
    # When each coordinate's share of the way reaches the wall and leaves it again. One that
    # stands still is between the wall's faces all the way, or never.
    pace = np.where(still, 1.0, way)
    between = (low < starts) & (starts < high)
    with np.errstate(over='ignore'):
        reaches = np.where(still, np.where(between, -np.inf, np.inf), (near - starts) / pace)
        leaves = np.where(still, np.inf, (far - starts) / pace)
    entered, left = reaches.max(-1), np.minimum(leaves.min(-1), 1.0)
    rows = np.flatnonzero((entered >= 0.0) & (entered < left))
    axes = reaches[rows].argmax(-1)
    ends[rows, axes] = near[rows, axes]


class Point2DLarge(_Point2D):
    """The open square."""

    name = 'point2d_large'
    summary = 'a point in an open square'
    default_options = Point2DLargeOptions()
    arm_options = ('box',)

    @property
    def half_side(self) -> float:
        """Half the side of the square, an option."""
        assert isinstance(self.options, Point2DLargeOptions)
        return self.options.box


class Point2DFourRoom(_Point2D):
    """Four rooms joined by doors; rectangles already include the point's radius."""

    name = 'point2d_four_room'
    summary = 'a point in four rooms joined by doors'
    default_options = TaskOptions()
    walls = (
        (-5.6, -3.4, -0.8, 0.8),
        (-1.48, 1.48, -0.8, 0.8),
        (3.4, 5.6, -0.8, 0.8),
        (-0.8, 0.8, -5.6, -3.4),
        (-0.8, 0.8, -1.48, 1.48),
        (-0.8, 0.8, 3.4, 5.6),
    )
