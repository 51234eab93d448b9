"""The arm of a task, with the task's own dynamics."""

from mher_ros.simulation.plant import Plant
from mher_ros.tasks import make
from mher_ros.tasks.mujoco_task import MujocoTask
from mher_ros.tasks.point2d import Point2D
from mher_ros.tasks.task import Task, TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

POINT_RADIUS = 0.03  # radius of the point, as a share of half the square's side
WALL_HEIGHT = 0.1  # likewise


class TaskPlant(Plant):
    """A simulated task: a command is an action of the task."""

    def __init__(self, task_name: str, options: TaskOptions | None = None) -> None:
        self._task = make(task_name, options)
        self.frame = self._task.interface.frame
        self.period = self._task.interface.control_period
        self.joint_names = self._task.joint_names
        self.command_names = tuple(field.name for field in self._task.interface.action)
        if isinstance(self._task, MujocoTask):
            self.model, self.data = self._task.model, self._task.data
            self.camera = self._task.camera
        else:
            self.model = point_scene(self._task)
            self.data = mujoco.MjData(self.model)
            self.camera = {'distance': 1.5 * self.model.stat.extent, 'elevation': -89.0}
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        self._task.reset(seed=seed)
        self._show()

    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._task.joint_state()

    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._task.tool_pose()

    def advance(self, command: NDArray[np.float64] | None) -> None:
        """Do one control period with an action (k,), clipped to [-1, 1]."""
        if command is None:
            self._task.hold()
        else:
            self._task.move(command.astype(np.float32).clip(-1.0, 1.0))
        self._show()

    def _show(self) -> None:
        """Update the scene of a task that is not simulated by MuJoCo."""
        if not isinstance(self._task, MujocoTask):
            self.data.qpos[:] = self._task.joint_state()[0]
            mujoco.mj_kinematics(self.model, self.data)


def point_scene(task: Task) -> mujoco.MjModel:
    """Return the model of a point2d task: joints x and y move a ball on a square."""
    if not isinstance(task, Point2D):
        raise TypeError(f'expected a point2d task, got {type(task).__name__}')
    side = task.half_side
    spec = mujoco.MjSpec()
    spec.modelname = 'point2d'
    plane, grey = mujoco.mjtGeom.mjGEOM_PLANE, (0.9, 0.9, 0.9, 1.0)
    spec.worldbody.add_geom(name='floor', type=plane, size=(side, side, 1.0), rgba=grey)
    height = WALL_HEIGHT * side
    for number, (x_low, x_high, y_low, y_high) in enumerate(task.walls):
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
