"""A robot simulated with masses, forces and contacts, moved by its command path."""

from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import Command
from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import Robot
from mher_ros.simulation.contacts import Contacts
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
import mujoco
from numpy.typing import ArrayLike

SETTLING = 2.0  # time in which an arm comes to rest [s]


class DynamicArm:
    """
    A simulated robot in simulated time, for an output that commands joints.

    Build a command path for ``arm``, and call ``step`` once per joint state.
    """

    def __init__(
        self,
        robot: Robot,
        output: str,
        payload: float = 0.0,
        delay: float = 0.0,
        randomise: float = 0.0,
    ) -> None:
        """
        Put the arm at rest at home.

        ``payload``: mass at the tool that the drives do not know [kg]; ``delay``: time after which
        the drives get a command [s]. ``randomise``: factor of the robot's ranges that the plant is
        drawn from at each reset with a seed.
        """
        task = robot.simulation_task
        ranges = robot.randomisation.scaled(randomise) if randomise else None
        varies = ranges is not None and ranges.payload[1] > 0.0
        self._driven = plant = (
            JointPlant(task, robot.scene, payload, varies=varies)
            if task
            else UrdfPlant(robot, payload, varies=varies)
        )
        self.arm = ArmModel(robot, plant.description(robot.name))
        self._plant = ControlledArm(plant, self.arm, delay, ranges=ranges)
        self._is_velocity = OUTPUTS[output].is_velocity
        self._plant.controller = 'joint_velocity' if self._is_velocity else 'joint_position'
        self._chain = [plant.joint_names.index(name) for name in self.arm.state_names]
        self.model: mujoco.MjModel = plant.model
        self.data: mujoco.MjData = plant.data
        self.period = plant.period
        """Time between two joint states [s]."""
        self.now = 0.0

    def reset(self, seed: int | None = None) -> None:
        """Put the arm at rest at home again, with the plant of a seed, at time 0."""
        self._plant.reset(seed)
        self.now = 0.0

    def positions(self) -> Vector:
        """Return the positions of ``arm.state_names`` (n,) [rad or m]."""
        return self._plant.joint_state()[0][self._chain]

    def tool_position(self) -> Vector:
        """Return the position of the tool (3,) [m] in the base frame."""
        return self._plant.tool_pose()[0]

    def step(self, path: CommandPath) -> Command | None:
        """Send the joint state to the command path, and carry out its command, if any."""
        path.makes_ahead = False  # the clock has steps
        positions, velocities = self._plant.joint_state()
        stamp = round(self.now * 1e9)
        if self._plant.has_new_state:
            path.take_state(self.now, stamp, positions[self._chain], velocities[self._chain])
        command = path.tick(self.now)
        moved = None
        if command is not None:
            moved = command.joint_velocities if self._is_velocity else command.joint_positions
        self._plant.advance(moved)
        self.now += self.period
        return command

    def contacts(self) -> Contacts:
        """Return what the arm has touched since the start, or since ``forget_contacts``."""
        return self._driven.contacts()

    def forget_contacts(self) -> None:
        """Start to count contacts again."""
        self._driven.forget_contacts()

    def put_obstacle(
        self, name: str, shape: str, size: ArrayLike, position: ArrayLike, orientation: ArrayLike
    ) -> None:
        """Put an obstacle in the arm's way, or move it, as ``Plant`` does."""
        self._driven.put_obstacle(name, shape, size, position, orientation)

    def settle(self, path: CommandPath) -> None:
        """Wait until the arm is at rest."""
        for _ in range(round(SETTLING / self.period)):
            self.step(path)
