"""A two-joint planar arm reaches for a point, on Gymnasium's Reacher model."""

from pathlib import Path
from typing import Any

import gymnasium
from mher_ros.interface import Field, TaskInterface
from mher_ros.tasks.mujoco_task import MujocoTask
from mher_ros.tasks.task import Array, Observation, TaskOptions
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

GOAL_RADIUS = 0.2
START_POSITION, START_VELOCITY = 0.1, 0.005  # largest initial values [rad], [rad/s]


class Reacher(MujocoTask):
    """Joint torques on a planar arm."""

    summary = 'a planar two-joint arm reaches for a point'
    default_options = TaskOptions(threshold=0.02)
    random_start = True
    substeps = 2
    tool = {'body': 'fingertip'}
    camera = {'lookat': (0.0, 0.0, 0.0), 'distance': 0.8, 'azimuth': 90.0, 'elevation': -90.0}

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        path = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets' / 'reacher.xml'
        return mujoco.MjModel.from_xml_path(str(path))

    def _reset_state(self, rng: Generator) -> None:
        super()._reset_state(rng)
        self.data.qpos[:2] += rng.uniform(-START_POSITION, START_POSITION, 2)
        self.data.qvel[:2] += rng.uniform(-START_VELOCITY, START_VELOCITY, 2)

    def _sample_goal(self, rng: Generator) -> Array:
        while True:
            goal = rng.uniform(-GOAL_RADIUS, GOAL_RADIUS, 2)
            if np.linalg.norm(goal) < GOAL_RADIUS:
                return goal

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        start = super().reset(seed=seed, options=options)
        self._move_target()
        return start

    def move(self, action: NDArray[np.float32]) -> None:
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)
        self._move_target()

    def _move_target(self) -> None:
        self.data.qpos[2:] = self.goal
        mujoco.mj_kinematics(self.model, self.data)

    def _name_joints(self) -> tuple[str, ...]:
        return super()._name_joints()[:2]  # the other joints move the target

    def _observation(self, positions: Array, velocities: Array) -> Array:
        tip = self._kinematics.position(np.concatenate((positions, self.goal)))
        return np.concatenate(
            (np.cos(positions), np.sin(positions), self.goal, velocities, tip[:2], (0.0,))
        )

    def _declare(self) -> TaskInterface:
        joints, gear = (0, 1), self.model.actuator_gear
        tip = tuple(Field(f'tip_position_{axis}', 'm') for axis in 'xy')
        return self._interface(
            task='reacher',
            observation=(
                *(Field(f'{entry}_joint{n}', '1') for entry in ('cos', 'sin') for n in joints),
                *(Field(f'goal_{axis}', 'm') for axis in 'xy'),
                *(Field(f'velocity_joint{n}', 'rad/s') for n in joints),
                *tip,
                Field('tip_height_above_goal', 'm'),
            ),
            goal=tip,
            action=tuple(
                Field(f'torque_joint{n}', 'N m', scale=float(gear[n, 0])) for n in joints
            ),
            action_meaning='joint_torque',
            goal_low=(-GOAL_RADIUS, -GOAL_RADIUS),
            goal_high=(GOAL_RADIUS, GOAL_RADIUS),
            achieved_index=(8, 9),
            goal_index=(4, 5),
        )
