"""A two-joint planar arm reaches for a point, on Gymnasium's Reacher model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
from mher_ros.control.kinematics import ToolKinematics
from mher_ros.interface import Field, TaskInterface
from mher_ros.tasks.mujoco_task import MujocoTask
from mher_ros.tasks.task import Observation, TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['Reacher']

GOAL_RADIUS = 0.2
START_POSITION, START_VELOCITY = 0.1, 0.005
"""Joints start within this of zero [rad], [rad/s]."""


class Reacher(MujocoTask):
    """
    Joint torques on a planar arm.

    The observation repeats the goal, so a relabelled transition must have it rewritten:
    ``interface.goal_index`` says where.
    """

    summary = 'a planar two-joint arm reaches for a point'
    default_options = TaskOptions(threshold=0.02)
    random_start = True
    substeps = 2
    camera = {
        'lookat': (0.0, 0.0, 0.0),
        'distance': 0.8,
        'azimuth': 90.0,
        'elevation': -90.0,
    }

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        self._kinematics = ToolKinematics(self._shared_settled_data().model, body='fingertip')
        super().__init__(options, render_mode)

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        path = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets' / 'reacher.xml'
        return mujoco.MjModel.from_xml_path(str(path))

    def _reset_state(self, rng: np.random.Generator) -> None:
        super()._reset_state(rng)
        self.data.qpos[:2] += rng.uniform(-START_POSITION, START_POSITION, 2)
        self.data.qvel[:2] += rng.uniform(-START_VELOCITY, START_VELOCITY, 2)

    def _draw_goal(self, rng: np.random.Generator) -> NDArray[np.float64]:
        while True:
            goal = rng.uniform(-GOAL_RADIUS, GOAL_RADIUS, 2)
            if np.linalg.norm(goal) < GOAL_RADIUS:
                return goal

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode, with the model's target where the goal is."""
        start = super().reset(seed=seed, options=options)
        self._move_target()
        return start

    def _advance(self, action: NDArray[np.float32]) -> None:
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.substeps)
        self._move_target()

    def _move_target(self) -> None:
        self.data.qpos[2:] = self.goal
        mujoco.mj_kinematics(self.model, self.data)

    def _name_joints(self) -> tuple[str, ...]:
        return super()._name_joints()[:2]  # the model's others carry its target

    def _observation(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        tip = self._kinematics.position(np.concatenate((positions, self.goal)))
        return np.concatenate(
            (np.cos(positions), np.sin(positions), self.goal, velocities, tip[:2], (0.0,))
        )

    def _declare(self) -> TaskInterface:
        joints = (0, 1)
        return TaskInterface(
            task='reacher',
            observation=(
                *(Field(f'cos_joint{joint}', '1') for joint in joints),
                *(Field(f'sin_joint{joint}', '1') for joint in joints),
                Field('goal_x', 'm'),
                Field('goal_y', 'm'),
                *(Field(f'velocity_joint{joint}', 'rad/s') for joint in joints),
                Field('tip_position_x', 'm'),
                Field('tip_position_y', 'm'),
                Field('tip_height_above_goal', 'm'),
            ),
            goal=(Field('tip_position_x', 'm'), Field('tip_position_y', 'm')),
            action=tuple(
                Field(
                    f'torque_joint{joint}', 'N m', scale=float(self.model.actuator_gear[joint, 0])
                )
                for joint in joints
            ),
            action_meaning='joint_torque',
            frame='world',
            control_period=self.substeps * self.model.opt.timestep,
            episode_steps=self.options.episode_steps,
            goal_low=(-GOAL_RADIUS, -GOAL_RADIUS),
            goal_high=(GOAL_RADIUS, GOAL_RADIUS),
            success_threshold=self.options.threshold,
            achieved_index=(8, 9),
            goal_index=(4, 5),
        )
