"""
The Fetch arm reaches for a point in the air or on the table.

Dynamics are those of Gymnasium-Robotics' FetchReach-v4, bit for bit, on its own model; only the
Python between two MuJoCo calls is leaner.
"""

from __future__ import annotations

import dataclasses

from mher_ros.control.kinematics import ToolKinematics
from mher_ros.interface import Field, TaskInterface
from mher_ros.options import option
from mher_ros.tasks.mujoco_task import MujocoTask, package_folder
from mher_ros.tasks.task import TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['FetchReach']

TARGET_STEP = np.float32(0.05)
"""Displacement of the gripper's target by an action of 1 [m]; the gripper follows about 0.03."""
GOAL_RANGE = 0.15
"""Goals lie within this of the initial gripper position on each axis [m]."""
LOWEST = 0.42
"""Height at which the gripper rests on the table [m]; no lower goal can be reached."""
FINGERS = ('robot0:r_gripper_finger_joint', 'robot0:l_gripper_finger_joint')
TOOL_ROTATION = np.array((1.0, 0.0, 1.0, 0.0))


@dataclasses.dataclass(frozen=True)
class FetchReachOptions(TaskOptions):
    """Options of the Fetch arm."""

    reachable_goals: bool = option(
        False, 'leave out the goals inside the table, which FetchReach-v4 has: 12 in 100'
    )


class FetchReach(MujocoTask):
    """A 7-joint Fetch arm whose gripper is led by displacements of a welded target."""

    summary = 'a Fetch arm reaches for a point'
    default_options = FetchReachOptions(threshold=0.05)
    substeps = 20
    camera = {
        'lookat': (1.25, 0.75, 0.6),
        'distance': 1.7,
        'azimuth': 132.0,
        'elevation': -14.0,
    }

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        settled = self._shared_settled_data()
        model = settled.model
        self._home = settled.site('robot0:grip').xpos.copy()
        self._gripper = model.body('robot0:gripper_link').id
        first, second = (model.joint(name).qposadr[0] for name in FINGERS)
        self._fingers = slice(first, second + 1)
        self._held: NDArray[np.float64] | None = None
        self._kinematics = ToolKinematics(model, site='robot0:grip')
        super().__init__(options, render_mode)

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        path = package_folder('gymnasium_robotics') / 'envs' / 'assets' / 'fetch' / 'reach.xml'
        return mujoco.MjModel.from_xml_path(str(path))

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        for name, value in (('slide0', 0.4049), ('slide1', 0.48), ('slide2', 0.0)):
            data.joint(f'robot0:{name}').qpos = value
        # The weld holds the gripper link on the target without an offset.
        model.eq_data[0, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        mujoco.mj_forward(model, data)
        data.mocap_pos[0] = data.site('robot0:grip').xpos + (-0.498, 0.005, -0.431 + 0.2)
        data.mocap_quat[0] = TOOL_ROTATION
        mujoco.mj_step(model, data, nstep=10 * cls.substeps)

    @property
    def _goals_are_reachable(self) -> bool:
        assert isinstance(self.options, FetchReachOptions)
        return self.options.reachable_goals

    def _draw_goal(self, rng: np.random.Generator) -> NDArray[np.float64]:
        if self._goals_are_reachable:
            return rng.uniform(self.interface.goal_low, self.interface.goal_high)
        return self._home + rng.uniform(-GOAL_RANGE, GOAL_RANGE, 3)

    def _reset_state(self, rng: np.random.Generator) -> None:
        super()._reset_state(rng)
        self._held = None

    def _advance(self, action: NDArray[np.float32]) -> None:
        self._held = None
        self._lead_gripper_to(self.data.xpos[self._gripper] + action[:3] * TARGET_STEP)

    def hold(self) -> None:
        """Stay in place for a control period; under an action of zero the arm sags."""
        if self._held is None:
            self._held = self.data.xpos[self._gripper].copy()
        self._lead_gripper_to(self._held)

    def _lead_gripper_to(self, target: NDArray[np.float64]) -> None:
        model, data = self.model, self.data
        data.mocap_pos[0] = target
        data.mocap_quat[0] = data.xquat[self._gripper] + TOOL_ROTATION
        mujoco.mj_step(model, data, nstep=self.substeps)
        data.qpos[self._fingers] = 0.0
        mujoco.mj_forward(model, data)

    def _observation(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        position, velocity = self._kinematics.position_and_velocity(positions, velocities)
        fingers, finger_velocities = positions[self._fingers], velocities[self._fingers]
        period = self.interface.control_period
        return np.concatenate((position, fingers, velocity * period, finger_velocities * period))

    def _declare(self) -> TaskInterface:
        period = self.substeps * self.model.opt.timestep
        per_period = f'm/s * {period:g} s'
        axes = 'xyz'
        low = self._home - GOAL_RANGE
        if self._goals_are_reachable:
            low[2] = LOWEST
        return TaskInterface(
            task='fetch_reach',
            observation=(
                *(Field(f'tool_position_{axis}', 'm') for axis in axes),
                *(Field(f'{side}_finger_position', 'm') for side in ('right', 'left')),
                *(Field(f'tool_velocity_{axis}', per_period) for axis in axes),
                *(Field(f'{side}_finger_velocity', per_period) for side in ('right', 'left')),
            ),
            goal=tuple(Field(f'tool_position_{axis}', 'm') for axis in axes),
            action=(
                *(Field(f'tool_target_{axis}', 'm', scale=float(TARGET_STEP)) for axis in axes),
                Field('gripper', '1', scale=0.0),
            ),
            action_meaning='tool_displacement',
            frame='world',
            control_period=period,
            episode_steps=self.options.episode_steps,
            goal_low=tuple(low.tolist()),
            goal_high=tuple((self._home + GOAL_RANGE).tolist()),
            success_threshold=self.options.threshold,
            achieved_index=(0, 1, 2),
        )
