"""Simulated arms: their base classes, and the arm of a task with the dynamics of the task."""

import abc
from collections.abc import Callable, Mapping
from typing import Any

from mher_ros.interface import Vector
from mher_ros.robots.arm_model import displace
from mher_ros.simulation.contacts import Contacts
from mher_ros.simulation.drives import Drives, POSITION_GAIN
from mher_ros.simulation.obstacle_bodies import ObstacleBodies
from mher_ros.simulation.plant_draw import PlantDraw
from mher_ros.simulation.urdf_writer import urdf_of
from mher_ros.tasks import make
from mher_ros.tasks.task import TaskOptions
import mujoco
import numpy as np
from numpy.typing import ArrayLike


class Plant(abc.ABC):
    """A simulated arm, which is stepped one period at a time."""

    model: mujoco.MjModel
    data: mujoco.MjData  # state for display
    camera: dict[str, Any]  # fields of MuJoCo's camera
    frame: str  # frame of the tool, of its commands, and of the display
    period: float  # simulated time of one `advance` [s]
    joint_names: tuple[str, ...]  # joints whose state is published
    command_names: tuple[str, ...]  # entries of a command: joints, or entries of an action
    no_forces = ''  # why forces and contacts are not simulated; empty: they are
    untouched: tuple[str, ...] = ()  # links whose shapes for contacts cannot be used

    def description(self, name: str) -> str:
        """Return the URDF of the arm, called ``name``."""
        return urdf_of(self.model, name, self.joint_names, self.frame)

    @abc.abstractmethod
    def reset(self, seed: int | None = None, start: Vector | None = None) -> None:
        """
        Put the arm in its initial state, drawn from ``seed`` if it is random.

        ``start``: initial positions of the commanded joints (k,) [rad or m]; ValueError if they
        cannot be used; None: the usual ones.
        """

    @abc.abstractmethod
    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions [rad or m] and velocities of ``joint_names`` as new arrays."""

    @abc.abstractmethod
    def tool_pose(self) -> tuple[Vector, Vector]:
        """Return position (3,) [m] and orientation (4,) (w, x, y, z) of the tool in ``frame``."""

    @abc.abstractmethod
    def advance(self, command: Vector | None) -> None:
        """Move for one period with a command; None: see the subclass."""

    @abc.abstractmethod
    def put_obstacle(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        """
        Put an obstacle in the arm's way, or move it; ValueError: it is refused.

        ``shape``: box, sphere or cylinder; ``size``: as that of an ``Obstacle`` (3,) [m];
        ``position`` (3,) [m] and ``orientation`` (4,) (w, x, y, z) in ``frame``.
        """

    @abc.abstractmethod
    def remove_obstacle(self, name: str) -> None:
        """Remove an obstacle that was put, if there is one of that name."""

    @property
    def has_new_state(self) -> bool:
        """Whether the joint state of this period is published; if not, it is lost."""
        return True

    def contacts(self) -> Contacts | None:
        """Return what the arm has touched since the last reset; None: it is not known."""
        return None


class TaskPlant(Plant):
    """A simulated task: a command is an action of the task."""

    def __init__(self, task_name: str, options: TaskOptions | None = None) -> None:
        self._task = make(task_name, options)
        self.frame = self._task.interface.frame
        self.period = self._task.interface.control_period
        self.joint_names = self._task.joint_names
        self.command_names = tuple(field.name for field in self._task.interface.action)
        self.reset()

    def reset(self, seed: int | None = None, start: Vector | None = None) -> None:
        if start is not None:
            raise ValueError(f'the task {self._task.interface.task} takes no initial positions')
        self._task.reset(seed=seed)
        self.model, self.data, self.camera = self._task.scene()

    def joint_state(self) -> tuple[Vector, Vector]:
        return self._task.joint_state()

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._task.tool_pose()

    def advance(self, command: Vector | None) -> None:
        """Do one control period with an action (k,), clipped to [-1, 1]."""
        if command is None:
            self._task.hold()
        else:
            self._task.move(command.astype(np.float32).clip(-1.0, 1.0))
        self._task.scene()  # updates ``data``

    def put_obstacle(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        raise ValueError(f'the task {self._task.interface.task} takes no obstacles')

    def remove_obstacle(self, name: str) -> None:
        pass


class JointDrivenPlant(Plant):
    """A simulated arm with a drive on each commanded joint."""

    movable_links = 0
    """Number of bodies that may be elsewhere than in the nominal arm."""
    _drives: Drives
    _commanded: list[int]  # entries of ``data.qpos`` that are the commanded joints (k)
    _lower: Vector  # ranges of these joints (k,) [rad or m]
    _upper: Vector
    _target: Vector  # where they are to go (k,)
    _obstacles: ObstacleBodies

    def _displace(self, links: Mapping[str, ArrayLike]) -> None:
        """Displace the links behind joints, by name, by (3,) [m] in their own frames."""
        if not links:
            return
        joints = self.model.jnt_qposadr.tolist()
        places = dict(zip(self.command_names, self._commanded, strict=True))
        displace(self.model, {joints.index(places[name]): at for name, at in links.items()})
        mujoco.mj_setConst(self.model, self.data)
        self.reset()

    def put_obstacle(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        self._obstacles.put(name, shape, size, position, orientation)

    def remove_obstacle(self, name: str) -> None:
        self._obstacles.remove(name)

    def vary(self, draw: PlantDraw) -> None:
        """Become the plant that was drawn; ``reset`` must follow."""
        self._drives.position_gains = POSITION_GAIN * draw.stiffness / draw.damping

    def advance(self, command: Vector | None) -> None:
        """Move for one period towards positions (k,) [rad or m] in range; None: the last."""
        if command is not None:
            self._target = np.clip(self.checked_positions(command), self._lower, self._upper)
        self._move(lambda positions: self._drives.step(self._target - positions))

    def advance_at(self, velocities: Vector) -> None:
        """Move for one period with joint velocities (k,) [rad/s or m/s], within the ranges."""
        self._move(lambda positions: self._drives.track(velocities))
        self._target = self.data.qpos[self._commanded]

    def _checked_start(self, start: Vector | None, home: Vector) -> Vector:
        """Return initial positions (k,) [rad or m] within the ranges; ``home`` if None."""
        if start is None:
            return home.copy()
        return np.clip(self.checked_positions(start), self._lower, self._upper)

    @abc.abstractmethod
    def _move(self, drive: Callable[[Vector], Vector]) -> None:
        """Move for one period with the velocities that ``drive`` returns for positions (k,)."""

    def checked_positions(self, command: Vector) -> Vector:
        """Return joint positions (k,); ValueError unless they are k finite numbers."""
        checked = np.asarray(command, np.float64)
        if checked.shape != (len(self.command_names),) or not np.isfinite(checked).all():
            raise ValueError(
                f'a command is {len(self.command_names)} finite joint positions '
                f'({", ".join(self.command_names)}), got {command!r}'
            )
        return checked
