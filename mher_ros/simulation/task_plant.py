"""The arm of a task, moved by the task's own dynamics."""

from __future__ import annotations

from mher_ros.control.commands import CommandEncoding
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.point_scene import point_scene
from mher_ros.tasks import make
from mher_ros.tasks.mujoco_task import MujocoTask
from mher_ros.tasks.task import TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['TaskPlant']


class TaskPlant(Plant):
    """
    Commanded as the task's actions are: by the tool's velocity, or by joint torques.

    A command moves it exactly as the action it stands for moves the task.
    """

    def __init__(self, task_name: str, options: TaskOptions | None = None) -> None:
        """Build the arm of the task, with its own default options unless others are given."""
        self._task = make(task_name, options)
        self.encoding = CommandEncoding(self._task.interface)
        self.frame = self._task.interface.frame
        self.period = self._task.interface.control_period
        self.joint_names = self._task.joint_names
        self.command_names = self.encoding.names
        if isinstance(self._task, MujocoTask):
            self.model, self.data = self._task.model, self._task.data
            self.camera = self._task.camera
        else:
            self.model = point_scene(self._task)
            self.data = mujoco.MjData(self.model)
            self.camera = {'distance': 1.5 * self.model.stat.extent, 'elevation': -89.0}
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Put the arm in the task's initial state."""
        self._task.reset(seed=seed)
        self._show()

    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the joints' positions and velocities as new arrays."""
        return self._task.joint_state()

    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return position (3,) [m] and orientation (4,) (w, x, y, z) of the tool in ``frame``."""
        return self._task.tool_pose()

    def advance(self, command: NDArray[np.float64] | None) -> None:
        """Do one control period."""
        if command is None:
            self._task.hold()
        else:
            self._task.move(self.encoding.action(command).clip(-1.0, 1.0))
        self._show()

    def _show(self) -> None:
        """Move the scene of a task that has no simulation of its own."""
        if not isinstance(self._task, MujocoTask):
            self.data.qpos[:] = self._task.joint_state()[0]
            mujoco.mj_kinematics(self.model, self.data)
