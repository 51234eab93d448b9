"""
The Sawyer arm reaches for a point above a table.

The model and its meshes come with the package metaworld (MIT); nothing of it is imported.
"""

from __future__ import annotations

from mher_ros.control.kinematics import ToolKinematics
from mher_ros.interface import Field, TaskInterface
from mher_ros.tasks.mujoco_task import MujocoTask, package_folder
from mher_ros.tasks.task import TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['SawyerReach']

GOAL_LOW = np.array((-0.2, 0.55, 0.05))
GOAL_HIGH = np.array((0.2, 0.75, 0.3))
TARGET_STEP = 0.02
"""Displacement of the hand's target by an action of 1 [m]."""
TARGET_START = (0.0, 0.5, 0.02)
TOOL_ROTATION = (1.0, 0.0, 1.0, 0.0)
READY = (1.03, -0.70, 0.42, 1.77, -0.57, 0.62, 3.53)
"""Joint angles near the start from which the arm settles [rad]."""

SETTLING = 100
"""Control periods after which the redundant arm has come to rest."""

SCENE = """
<mujoco model="sawyer_reach">
  <option timestep="0.002"/>
  <visual><headlight ambient="0.4 0.4 0.4"/></visual>
  <asset>
    <texture type="skybox" builtin="gradient" rgb1="0.9 0.95 1" rgb2="0.6 0.7 0.8"
             width="32" height="32"/>
  </asset>
  <include file="{assets}/objects/assets/xyz_base_dependencies.xml"/>
  <compiler meshdir="{assets}/scene"/>
  <worldbody>
    <light directional="true" pos="0 0 3" dir="0 0.3 -1" castshadow="false"/>
    <geom name="table" type="box" pos="0 0.65 -0.05" size="0.5 0.35 0.02"
          rgba="0.85 0.8 0.7 1" contype="0" conaffinity="0"/>
    <include file="{assets}/objects/assets/xyz_base.xml"/>
  </worldbody>
  <actuator>
    <position ctrllimited="true" ctrlrange="-1 1" joint="r_close" kp="400"/>
    <position ctrllimited="true" ctrlrange="-1 1" joint="l_close" kp="400"/>
  </actuator>
  <equality><weld body1="mocap" body2="hand" solref="0.02 1"/></equality>
</mujoco>
"""


class SawyerReach(MujocoTask):
    """A 7-joint Sawyer arm whose hand is led by displacements of a welded target."""

    summary = 'a Sawyer arm reaches for a point'
    default_options = TaskOptions(threshold=0.06)
    substeps = 50
    camera = {
        'lookat': (0.0, 0.4, 0.2),
        'distance': 2.0,
        'azimuth': 45.0,
        'elevation': -25.0,
    }

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        self._kinematics = ToolKinematics(self._shared_settled_data().model, body='hand')
        super().__init__(options, render_mode)

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        assets = package_folder('metaworld') / 'assets'
        model = mujoco.MjModel.from_xml_string(SCENE.format(assets=assets))
        # The weld holds the hand on the target without an offset.
        model.eq_data[0, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return model

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.qpos[: len(READY)] = READY
        _hold_start(data)
        mujoco.mj_step(model, data, nstep=SETTLING * cls.substeps)

    def _reset_state(self, rng: np.random.Generator) -> None:
        super()._reset_state(rng)
        _hold_start(self.data)

    def _draw_goal(self, rng: np.random.Generator) -> NDArray[np.float64]:
        return rng.uniform(GOAL_LOW, GOAL_HIGH)

    def _advance(self, action: NDArray[np.float32]) -> None:
        target = self.data.mocap_pos[0] + TARGET_STEP * action
        self.data.mocap_pos[0] = np.clip(target, GOAL_LOW, GOAL_HIGH)
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)

    def _observation(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return self._kinematics.position(positions)

    def _declare(self) -> TaskInterface:
        position = tuple(Field(f'tool_position_{axis}', 'm') for axis in 'xyz')
        return TaskInterface(
            task='sawyer_reach',
            observation=position,
            goal=position,
            action=tuple(Field(f'tool_target_{axis}', 'm', scale=TARGET_STEP) for axis in 'xyz'),
            action_meaning='target_displacement',
            frame='world',
            control_period=self.substeps * self.model.opt.timestep,
            episode_steps=self.options.episode_steps,
            goal_low=tuple(GOAL_LOW.tolist()),
            goal_high=tuple(GOAL_HIGH.tolist()),
            success_threshold=self.options.threshold,
            achieved_index=(0, 1, 2),
        )


def _hold_start(data: mujoco.MjData) -> None:
    data.mocap_pos[0], data.mocap_quat[0] = TARGET_START, TOOL_ROTATION
    data.ctrl[:] = (-1.0, 1.0)  # fingers open
