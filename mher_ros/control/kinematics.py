"""From joint positions and velocities to the tool's, through a MuJoCo model of the arm."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['ToolKinematics']


class ToolKinematics:
    """
    Forward kinematics of one site or body of an arm.

    It keeps its own ``MjData``, so that asking it a question never disturbs a simulation that
    runs on the same model.
    """

    def __init__(self, model: mujoco.MjModel, *, site: str | None = None, body: str | None = None):
        if (site is None) == (body is None):
            raise ValueError('name the tool by either a site or a body')
        self._model = model
        self._data = mujoco.MjData(model)
        self._jacobian = np.zeros((3, model.nv))
        if site is not None:
            self._id = model.site(site).id
            self._position = self._data.site_xpos[self._id]
            self._rotation = self._data.site_xmat[self._id]
            self._fill_jacobian = mujoco.mj_jacSite
        else:
            self._id = model.body(body).id
            self._position = self._data.xpos[self._id]
            self._rotation = self._data.xmat[self._id]
            self._fill_jacobian = mujoco.mj_jacBody

    def position(self, joint_positions: ArrayLike) -> NDArray[np.float64]:
        """Return the tool's position in the model's world frame [m] for all ``nq`` joints."""
        self._data.qpos[:] = _vector('joint positions', joint_positions, self._model.nq)
        mujoco.mj_kinematics(self._model, self._data)
        return self._position.copy()

    def pose(self, joint_positions: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the tool's position [m] and orientation (w, x, y, z) in the world frame."""
        position, orientation = self.position(joint_positions), np.empty(4)
        mujoco.mju_mat2Quat(orientation, self._rotation)
        return position, orientation

    def position_and_velocity(
        self, joint_positions: ArrayLike, joint_velocities: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the tool's position [m] and linear velocity [m/s] in the world frame."""
        position = self.position(joint_positions)
        mujoco.mj_comPos(self._model, self._data)
        self._fill_jacobian(self._model, self._data, self._jacobian, None, self._id)
        velocities = _vector('joint velocities', joint_velocities, self._model.nv)
        return position, self._jacobian @ velocities


def _vector(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    vector = np.asarray(values, np.float64)
    if vector.shape != (size,):  # a single number would be spread over all joints
        raise ValueError(f'expected {size} {name}, got an array of shape {vector.shape}')
    return vector
