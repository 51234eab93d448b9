"""A Fetch arm reaches for a point in the air or on the table, as in FetchReach-v4."""

import dataclasses

from mher_ros.interface import Field, TaskInterface
from mher_ros.options import option
from mher_ros.tasks.mujoco_task import MujocoTask, package_folder
from mher_ros.tasks.task import Array, TaskOptions
import mujoco
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

TARGET_STEP = np.float32(0.05)
"""Displacement of the gripper's target for an action of 1 [m]; the gripper moves about 0.03."""
GOAL_RANGE = 0.15  # largest distance of goals from the initial gripper position per axis [m]
LOWEST = 0.42  # height of the gripper on the table [m]; lower goals cannot be reached
FINGERS = ('robot0:r_gripper_finger_joint', 'robot0:l_gripper_finger_joint')
TOOL_ROTATION = np.array((1.0, 0.0, 1.0, 0.0))


@dataclasses.dataclass(frozen=True)
class FetchReachOptions(TaskOptions):
    reachable_goals: bool = option(
        False, 'exclude goals inside the table, which are 12 % of those of FetchReach-v4'
    )


class FetchReach(MujocoTask):
    """A 7-joint Fetch arm; actions move a target that the gripper is welded to."""

    # Model and dynamics are those of FetchReach-v4 of Gymnasium-Robotics, bit for bit.
    summary = 'a Fetch arm reaches for a point'
    options: FetchReachOptions
    default_options = FetchReachOptions(threshold=0.05)
    substeps = 20
    tool = {'site': 'robot0:grip'}
    camera = {'lookat': (1.25, 0.75, 0.6), 'distance': 1.7, 'azimuth': 132.0, 'elevation': -14.0}

    def __init__(self, options: TaskOptions | None = None, render_mode: str | None = None) -> None:
        settled = self._shared_settled_data()
        model = settled.model
        self._home = settled.site('robot0:grip').xpos.copy()
        self._gripper = model.body('robot0:gripper_link').id
        first, second = (model.joint(name).qposadr[0] for name in FINGERS)
        self._fingers = slice(first, second + 1)
        self._held: Array | None = None
        super().__init__(options, render_mode)

    @classmethod
    def _build_model(cls) -> mujoco.MjModel:
        path = package_folder('gymnasium_robotics') / 'envs' / 'assets' / 'fetch' / 'reach.xml'
        return mujoco.MjModel.from_xml_path(str(path))

    @classmethod
    def _settle(cls, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        for name, value in (('slide0', 0.4049), ('slide1', 0.48), ('slide2', 0.0)):
            data.joint(f'robot0:{name}').qpos = value
        # The weld has no offset between gripper link and target.
        model.eq_data[0, :7] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        mujoco.mj_forward(model, data)
        data.mocap_pos[0] = data.site('robot0:grip').xpos + (-0.498, 0.005, -0.431 + 0.2)
        data.mocap_quat[0] = TOOL_ROTATION
        mujoco.mj_step(model, data, nstep=10 * cls.substeps)

    def _sample_goal(self, rng: Generator) -> Array:
        if self.options.reachable_goals:
            return rng.uniform(self.interface.goal_low, self.interface.goal_high)
        return self._home + rng.uniform(-GOAL_RANGE, GOAL_RANGE, 3)

    def _reset_state(self, rng: Generator) -> None:
        super()._reset_state(rng)
        self._held = None

    def move(self, action: NDArray[np.float32]) -> None:
        self._held = None
        self._move_gripper_to(self.data.xpos[self._gripper] + action[:3] * TARGET_STEP)

    def hold(self) -> None:
        """Stay in place for a control period; with an action of zero the arm sags."""
        if self._held is None:
            self._held = self.data.xpos[self._gripper].copy()
        self._move_gripper_to(self._held)

    def _move_gripper_to(self, target: Array) -> None:
        model, data = self.model, self.data
        data.mocap_pos[0] = target
        data.mocap_quat[0] = data.xquat[self._gripper] + TOOL_ROTATION
        mujoco.mj_step(model, data, nstep=self.substeps)
        data.qpos[self._fingers] = 0.0
        mujoco.mj_forward(model, data)

    def _observation(self, positions: Array, velocities: Array) -> Array:
        position, velocity = self._kinematics.position_and_velocity(positions, velocities)
        fingers, finger_velocities = positions[self._fingers], velocities[self._fingers]
        period = self.interface.control_period
        return np.concatenate((position, fingers, velocity * period, finger_velocities * period))

    def _declare(self) -> TaskInterface:
        axes, per_period = 'xyz', f'm/s * {self.substeps * self.model.opt.timestep:g} s'
        low = self._home - GOAL_RANGE
        if self.options.reachable_goals:
            low[2] = LOWEST
        return self._interface(
            task='fetch_reach',
            observation=(
                *(Field(f'tool_position_{axis}', 'm', source='setpoint') for axis in axes),
                *(Field(f'{side}_finger_position', 'm') for side in ('right', 'left')),
                *(Field(f'tool_velocity_{axis}', per_period, source='setpoint') for axis in axes),
                *(Field(f'{side}_finger_velocity', per_period) for side in ('right', 'left')),
            ),
            goal=tuple(Field(f'tool_position_{axis}', 'm') for axis in axes),
            action=(
                *(Field(f'tool_target_{axis}', 'm', scale=float(TARGET_STEP)) for axis in axes),
                Field('gripper', '1', scale=0.0),
            ),
            action_meaning='tool_displacement',
            goal_low=tuple(low.tolist()),
            goal_high=tuple((self._home + GOAL_RANGE).tolist()),
            achieved_index=(0, 1, 2),
        )
