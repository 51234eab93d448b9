"""A kinematic simulation of any arm with a URDF: joints follow commands without forces."""

from collections.abc import Callable

from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import find_file, read_model
from mher_ros.robots.robot import Robot, RobotError
from mher_ros.simulation.drives import Drives
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.simulation.urdf_scene import scene_of, with_found_meshes
import mujoco
import numpy as np

TIMESTEP, STEPS = 0.002, 5
"""Time between two steps of the drives [s], and number of steps between two joint states."""


class KinematicPlant(JointDrivenPlant):
    """Commanded joints follow set-points within their limits; the others do not move."""

    period = STEPS * TIMESTEP

    def __init__(self, robot: Robot) -> None:
        simulated = robot.simulated()
        path = find_file(simulated.model, simulated.folder)
        self._text, self._folder = read_model(path), path.parent
        self._arm = ArmModel(simulated, self._text)
        self.frame = self._arm.base_frame
        self.command_names = self._arm.joint_names
        self.model = scene_of(self._text, self.frame, self._folder, robot.scene)
        self.data = mujoco.MjData(self.model)
        self.joint_names = tuple(self.model.joint(i).name for i in range(self.model.njnt))
        self._commanded = [self.joint_names.index(name) for name in self.command_names]
        self._chain = [self.joint_names.index(name) for name in self._arm.state_names]
        self._drives = Drives(self._arm.velocity_limits, TIMESTEP)
        self._lower, self._upper = self._arm.lower, self._arm.upper
        self._home = self._checked_home(robot)
        self.reset()
        middle = self.tool_pose()[0] / 2.0
        self.camera = {'lookat': middle, 'distance': 2.0, 'azimuth': 135.0, 'elevation': -20.0}

    def description(self, name: str) -> str:
        """Return the robot's own URDF, with full paths of its meshes."""
        return with_found_meshes(self._text, self._folder)

    def reset(self, seed: int | None = None) -> None:
        """Put the arm at rest at home, which is not random."""
        self.data.qpos[:] = self._home
        self.data.qvel[:] = 0.0
        self._target = self._home[self._commanded]
        self._drives.reset()
        mujoco.mj_kinematics(self.model, self.data)

    def joint_state(self) -> tuple[Vector, Vector]:
        return self.data.qpos.copy(), self.data.qvel.copy()

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._arm.tool_pose(self.data.qpos[self._chain])

    def _move(self, drive: Callable[[Vector], Vector]) -> None:
        positions, velocities = self.data.qpos[self._commanded], np.empty(0)
        for _ in range(STEPS):
            velocities = drive(positions)
            wanted = positions + TIMESTEP * velocities
            positions = np.clip(wanted, self._lower, self._upper)
            velocities[positions != wanted] = 0.0  # a joint stops at its limit
        self.data.qpos[self._commanded], self.data.qvel[self._commanded] = positions, velocities
        mujoco.mj_kinematics(self.model, self.data)

    def _checked_home(self, robot: Robot) -> Vector:
        unknown = [name for name in robot.home if name not in self.joint_names]
        if unknown:
            raise RobotError(
                f'robot {robot.name}: home takes joints of the model '
                f'({", ".join(self.joint_names)}); got {", ".join(unknown)}'
            )
        home = np.array([robot.home.get(name, 0.0) for name in self.joint_names])
        limits = zip(self._arm.joint_names, self._arm.lower, self._arm.upper, strict=True)
        for place, (name, low, high) in zip(home[self._commanded], limits, strict=True):
            if not low <= place <= high:
                raise RobotError(
                    f'robot {robot.name}: home.{name} is from {low:g} to {high:g}, got {place:g}'
                )
        return home
