"""A kinematic simulation of any arm with a URDF: joints follow commands without forces."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mher_ros.interface import Vector
from mher_ros.robots.robot import Robot
from mher_ros.simulation.drives import Drives
from mher_ros.simulation.obstacle_bodies import ObstacleBodies
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.simulation.urdf_arm import UrdfArm
from mher_ros.simulation.urdf_scene import scene_of
import mujoco
import numpy as np
from numpy.typing import ArrayLike

TIMESTEP, STEPS = 0.002, 5
"""Time between two steps of the drives [s], and number of steps between two joint states."""


class KinematicPlant(JointDrivenPlant):
    """
    Commanded joints follow set-points within their limits; the others do not move.

    The arm passes through obstacles.
    """

    period = STEPS * TIMESTEP

    def __init__(
        self,
        robot: Robot,
        no_forces: str = 'the simulation is kinematic',
        displaced: Mapping[str, ArrayLike] = MappingProxyType({}),
    ) -> None:
        """``no_forces``: why forces are not simulated; ``displaced``: as in ``UrdfPlant``."""
        self._urdf, self.no_forces = UrdfArm(robot), no_forces
        self._arm = self._urdf.model.displaced(displaced)
        self.frame, self.camera = self._arm.base_frame, self._urdf.camera
        self.joint_names, self.command_names = self._urdf.joint_names, self._arm.joint_names
        self.model = scene_of(self._urdf.text, self.frame, self._urdf.folder, robot.scene)
        self.data = mujoco.MjData(self.model)
        self._commanded = self._urdf.commanded
        self._drives = Drives(self._arm.velocity_limits, TIMESTEP)
        self._lower, self._upper = self._arm.lower, self._arm.upper
        self._obstacles = ObstacleBodies(self.model, self.data)
        self._displace(displaced)
        self.reset()

    def description(self, name: str) -> str:
        """Return the robot's own URDF, with full paths of its meshes."""
        return self._urdf.description

    def reset(self, seed: int | None = None, start: Vector | None = None) -> None:
        """Put the arm at rest in its initial state, which is not random."""
        self._target = self._checked_start(start, self._urdf.home[self._commanded])
        self.data.qpos[:] = self._urdf.home
        self.data.qpos[self._commanded] = self._target
        self.data.qvel[:] = 0.0
        self._drives.reset()
        mujoco.mj_kinematics(self.model, self.data)

    def joint_state(self) -> tuple[Vector, Vector]:
        return self.data.qpos.copy(), self.data.qvel.copy()

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._arm.tool_pose(self.data.qpos[self._urdf.chain])

    def _move(self, drive: Callable[[Vector], Vector]) -> None:
        positions, velocities = self.data.qpos[self._commanded], np.empty(0)
        for _ in range(STEPS):
            velocities = drive(positions)
            wanted = positions + TIMESTEP * velocities
            positions = np.clip(wanted, self._lower, self._upper)
            velocities[positions != wanted] = 0.0  # a joint stops at its limit
        self.data.qpos[self._commanded], self.data.qvel[self._commanded] = positions, velocities
        mujoco.mj_kinematics(self.model, self.data)
