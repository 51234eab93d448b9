"""A Sawyer arm reaches for a point above a table."""

import dataclasses

from mher_ros.interface import Field, TaskInterface
from mher_ros.tasks.mujoco_task import MujocoTask, package_folder
from mher_ros.tasks.task import Array, TaskOptions
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

GOAL_LOW = np.array((-0.2, 0.55, 0.05))
GOAL_HIGH = np.array((0.2, 0.75, 0.3))
TARGET_STEP = 0.02  # displacement of the hand's target for an action of 1 [m]
TARGET_START = (0.0, 0.5, 0.02)
TOOL_ROTATION = (1.0, 0.0, 1.0, 0.0)
READY = (1.03, -0.70, 0.42, 1.77, -0.57, 0.62, 3.53)  # near the initial position [rad]
SETTLING = 100  # control periods until the redundant arm is at rest

# The package metaworld (MIT) contains the model and its meshes; none of its code is imported.
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
    """A 7-joint Sawyer arm; actions move a target that the hand is welded to."""

    summary = 'a Sawyer arm reaches for a point'
    default_options = TaskOptions(threshold=0.06)
    substeps = 50
    tool = {'body': 'hand'}
    camera = {'lookat': (0.0, 0.4, 0.2), 'distance': 2.0, 'azimuth': 45.0, 'elevation': -25.0}

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        assets = package_folder('metaworld') / 'assets'
        model = mujoco.MjModel.from_xml_string(SCENE.format(assets=assets))
        # The weld has no offset between hand and target.
        model.eq_data[0, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return model

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        data.qpos[: len(READY)] = READY
        _hold_start(data)
        mujoco.mj_step(model, data, nstep=SETTLING * cls.substeps)

    def _reset_state(self, rng: Generator) -> None:
        super()._reset_state(rng)
        _hold_start(self.data)

    def _sample_goal(self, rng: Generator) -> Array:
        return rng.uniform(GOAL_LOW, GOAL_HIGH)

    def move(self, action: NDArray[np.float32]) -> None:
        target = self.data.mocap_pos[0] + TARGET_STEP * action
        self.data.mocap_pos[0] = np.clip(target, GOAL_LOW, GOAL_HIGH)
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)

    def _observation(self, positions: Array, velocities: Array) -> Array:
        return self._kinematics.position(positions)

    def _declare(self) -> TaskInterface:
        position = tuple(Field(f'tool_position_{axis}', 'm') for axis in 'xyz')
        # Without velocities, a policy on measured, delayed positions would oscillate.
        observed = tuple(dataclasses.replace(field, source='setpoint') for field in position)
        return self._interface(
            task='sawyer_reach',
            observation=observed,
            goal=position,
            action=tuple(Field(f'tool_target_{axis}', 'm', scale=TARGET_STEP) for axis in 'xyz'),
            action_meaning='target_displacement',
            goal_low=tuple(GOAL_LOW.tolist()),
            goal_high=tuple(GOAL_HIGH.tolist()),
            achieved_index=(0, 1, 2),
        )


def _hold_start(data: mujoco.MjData) -> None:
    data.mocap_pos[0], data.mocap_quat[0] = TARGET_START, TOOL_ROTATION
    data.ctrl[:] = (-1.0, 1.0)  # fingers open
