"""Base class of the MuJoCo tasks: simulation, reset and image."""

import functools
import importlib.util
from pathlib import Path
from typing import Any, ClassVar

from mher_ros.errors import explaining_missing_extras
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.tasks.task import Array, Task, TaskOptions
import mujoco
from numpy.random import Generator


class MujocoTask(Task):
    parallel_stepping = True  # MuJoCo releases the GIL while it steps
    substeps: ClassVar[int]
    tool: ClassVar[dict[str, str]]  # site or body of the tool in the model
    camera: ClassVar[dict[str, Any]]  # lookat, distance, azimuth, elevation

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        self._settled = self._shared_settled_data()
        self.model: mujoco.MjModel = self._settled.model
        self.data = mujoco.MjData(self.model)
        self._kinematics = ToolKinematics(self.model, **self.tool)
        self.joint_names = self._name_joints()
        super().__init__(options, render_mode)

    @classmethod
    @functools.cache
    def _shared_settled_data(cls) -> mujoco.MjData:
        # All instances share the model and the initial state; a reset restores it exactly.
        data = mujoco.MjData(cls._build_model())
        cls._settle(data.model, data)
        return data

    def joint_state(self) -> tuple[Array, Array]:
        count = len(self.joint_names)
        return self.data.qpos[:count].copy(), self.data.qvel[:count].copy()

    def tool_pose(self) -> tuple[Array, Array]:
        return self._kinematics.pose(self.data.qpos)

    def _name_joints(self) -> tuple[str, ...]:
        """Return the names of the arm's joints, the first ones of the model, 1 DoF each."""
        return tuple(joint_name(self.model.joint(index).name) for index in range(self.model.njnt))

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        raise NotImplementedError

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Move ``data`` to the initial state of the episodes."""

    def _interface(self, **fields: Any) -> TaskInterface:
        period = self.substeps * self.model.opt.timestep
        return super()._interface(frame='world', control_period=period, **fields)

    def _reset_state(self, rng: Generator) -> None:
        mujoco.mj_resetData(self.model, self.data)
        self.data.time = self._settled.time
        self.data.qpos[:] = self._settled.qpos
        self.data.qvel[:] = self._settled.qvel
        mujoco.mj_forward(self.model, self.data)

    def scene(self) -> tuple[mujoco.MjModel, mujoco.MjData, dict[str, Any]]:
        return self.model, self.data, self.camera


def joint_name(name: str) -> str:
    """Return the ROS name of a joint; for the Fetch, the name on the real robot."""
    fetch = name.startswith('robot0:')
    bare = name.removeprefix('robot0:')
    return f'{bare}_joint' if fetch and not bare.endswith('_joint') else bare


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    with explaining_missing_extras():
        package = importlib.util.find_spec(name)
        if package is None or package.origin is None:
            raise ModuleNotFoundError(name=name)
    return Path(package.origin).parent
