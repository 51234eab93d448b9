"""What tasks in MuJoCo share: the simulation, its reset and its picture."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any, ClassVar

from mher_ros.control.kinematics import ToolKinematics
from mher_ros.errors import MherError
from mher_ros.tasks.task import Task, TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['MissingModelError', 'MujocoTask', 'joint_name', 'package_folder']


class MujocoTask(Task):
    """
    A task on a MuJoCo model.

    The model and the settled initial state are made once a process and shared by all instances;
    every reset restores exactly that state, with nothing left of the warm start.
    """

    threads_pay = True  # MuJoCo lets go of the interpreter lock while it steps
    substeps: ClassVar[int]
    _kinematics: ToolKinematics
    camera: ClassVar[dict[str, Any]]
    """Free camera for pictures: lookat, distance, azimuth, elevation."""

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        self._settled = self._shared_settled_data()
        self.model: mujoco.MjModel = self._settled.model
        self.data = mujoco.MjData(self.model)
        self.joint_names = self._name_joints()
        self._renderer: Any = None
        super().__init__(options, render_mode)

    @classmethod
    @functools.cache
    def _shared_settled_data(cls) -> mujoco.MjData:
        data = mujoco.MjData(cls._build_model())
        cls._settle(data.model, data)
        return data

    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the joints' positions [rad or m] and velocities as new arrays."""
        count = len(self.joint_names)
        return self.data.qpos[:count].copy(), self.data.qvel[:count].copy()

    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the tool's position [m] and orientation (w, x, y, z) in the world frame."""
        return self._kinematics.pose(self.data.qpos)

    def _name_joints(self) -> tuple[str, ...]:
        """Name the arm's joints, which are the model's first, one degree of freedom each."""
        return tuple(joint_name(self.model.joint(index).name) for index in range(self.model.njnt))

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        """Compile the model."""
        raise NotImplementedError

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Bring ``data`` to the state every episode starts from."""

    def _reset_state(self, rng: np.random.Generator) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.time = self._settled.time
        self.data.qpos[:] = self._settled.qpos
        self.data.qvel[:] = self._settled.qvel
        mujoco.mj_forward(self.model, self.data)

    def render(self) -> NDArray[np.uint8]:
        """Return a picture of the scene with the goal as a translucent ball."""
        from mher_ros.tasks.rendering import SceneRenderer

        if self._renderer is None:
            self._renderer = SceneRenderer(self.model, self.camera)
        goal = np.zeros(3)
        goal[: self.goal.size] = self.goal
        return self._renderer.draw(self.data, goal, self.interface.success_threshold)

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None


def joint_name(name: str) -> str:
    """Return the ROS name of a joint of a model: Fetch's as on the real robot."""
    fetch = name.startswith('robot0:')
    bare = name.removeprefix('robot0:')
    return f'{bare}_joint' if fetch and not bare.endswith('_joint') else bare


class MissingModelError(MherError, ModuleNotFoundError):
    """The package that an arm's model comes with is not installed."""


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    package = importlib.util.find_spec(name)
    if package is None or package.origin is None:
        raise MissingModelError(
            f"this task's model comes with the package {name.replace('_', '-')}, "
            'which is not installed'
        )
    return Path(package.origin).parent
