"""The task ``reach``: joint motions bring the tool of any robot to a position."""

import dataclasses
from typing import Any

from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.fit import trained_arm
from mher_ros.control.lockstep_controller import LockstepController
from mher_ros.control.reachability import Reachability
from mher_ros.interface import Field, TaskInterface, Vector
from mher_ros.options import option, OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.workspace import GoalError, Workspace
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.simulation.urdf_scene import MassError
from mher_ros.tasks.task import Task, TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray

TRIES = 100  # to draw a goal that can be reached
REACH = 0.15  # half of the edge of the box of goals, before the workspace's scale [m]


@dataclasses.dataclass(frozen=True)
class ReachOptions(TaskOptions):
    robot: str = option('fetch', 'the arm: a name from config/robots, or the path of a YAML file')
    control_period: float = option(0.04, 'time between two actions [s]', low=0.005, high=1.0)
    joint_speed: float = option(
        0.5, 'speed of a joint that an action of 1 asks for [rad/s or m/s]', low=0.01, high=10.0
    )


class Reach(Task):
    """Joint velocities move the tool of any robot to a position."""

    # Actions go through the command path of deployment: for the agent, the safety filter is part
    # of the arm. The robot is simulated in this process, unless ``arm`` is given: then the arm is
    # commanded over topics, and this class only defines observations, goals and rewards.
    summary = 'joint motions bring the tool of a robot to a position in space'
    default_options = ReachOptions(episode_steps=50, threshold=0.05)
    options: ReachOptions

    def __init__(
        self,
        options: TaskOptions | None = None,
        render_mode: str | None = None,
        arm: ArmModel | None = None,
    ) -> None:
        given = options if isinstance(options, ReachOptions) else self.default_options
        self.robot = robot = load_robot(given.robot)
        self._plant = plant = None if arm else simulated_robot(robot)
        self.arm = arm or ArmModel(robot, self._simulated().description(robot.name))
        self.command_period = plant.period if plant else 1.0 / robot.command_rate
        """Time between two commands to the arm [s]."""
        self.commands_per_step = max(1, round(given.control_period / self.command_period))
        self.joint_names = self.arm.state_names
        self.limits = MotionLimits(robot.speed, robot.acceleration)
        if robot.workspace.origin is None and not robot.home:
            raise OptionError(
                f'robot {robot.name}: workspace.origin, or home, is needed to place the goals'
            )
        home = self.arm.tool_position(self._home_positions)
        centre = np.array(robot.workspace.origin or home)
        edge = np.full(3, REACH)
        scale = robot.workspace.scale
        self.workspace = Workspace(centre - edge, centre + edge, scale=scale, box=robot.box)
        self._reachability = Reachability(self.arm, keeps_orientation=False)
        super().__init__(given, render_mode)
        if plant is not None:
            self._chain = [plant.joint_names.index(name) for name in self.joint_names]
            self._controller = self.lockstep_controller()

    def lockstep_controller(self) -> LockstepController:
        """Return the command path for an arm that waits for each command."""
        return LockstepController(
            self.interface, self.arm, self.workspace, self.limits, self.command_period
        )

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities of ``joint_names``; zeros without a simulation."""
        if self._plant is None:
            return np.zeros(len(self.joint_names)), np.zeros(len(self.joint_names))
        positions, velocities = self._plant.joint_state()
        return positions[self._chain], velocities[self._chain]

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self.arm.tool_pose(self.joint_state()[0])

    def scene(self) -> tuple[mujoco.MjModel, mujoco.MjData, dict[str, Any]]:
        plant = self._simulated()
        return plant.model, plant.data, plant.camera

    def _simulated(self) -> ControlledArm:
        if self._plant is None:
            raise RuntimeError(f'the arm of robot {self.robot.name} is not in this process')
        return self._plant

    @property
    def _home_positions(self) -> Vector:
        """Positions of ``joint_names`` at the robot's home (n,) [rad or m]."""
        return np.array([self.robot.home.get(name, 0.0) for name in self.arm.state_names])

    def _reset_state(self, rng: np.random.Generator) -> None:
        if self._plant is not None:
            self._plant.reset()
            self._controller.reset()

    def _sample_goal(self, rng: np.random.Generator) -> Vector:
        """Return a goal that the tool can reach, and where the arm touches nothing."""
        low, high = self.interface.goal_low, self.interface.goal_high
        refusal = None
        for _ in range(TRIES):
            goal = rng.uniform(low, high)
            try:
                self._reachability.check_goal(goal, self._home_positions, None)
                return goal
            except GoalError as error:
                refusal = error
        raise OptionError(
            f'robot {self.robot.name}: a workspace with goals that the arm can reach is expected; '
            f'of {TRIES} random goals it can reach none. The last one: {refusal}'
        )

    def move(self, action: NDArray[np.float32]) -> None:
        plant = self._simulated()
        for index in range(self.commands_per_step):
            given = action if index == 0 else None
            plant.advance(self._controller.answer(*self.joint_state(), given))

    def _observation(self, positions: Vector, velocities: Vector) -> Vector:
        return np.concatenate((positions, velocities, self.arm.tool_position(positions)))

    def _declare(self) -> TaskInterface:
        names, joints = self.joint_names, self.arm.joint_names
        tool = tuple(Field(f'tool_position_{axis}', 'm') for axis in 'xyz')
        period = self.commands_per_step * self.command_period
        units = dict(zip(names, self.arm.units, strict=True))
        return self._interface(
            task='reach',
            observation=(
                *(Field(f'position_{name}', units[name]) for name in names),
                *(Field(f'velocity_{name}', f'{units[name]}/s') for name in names),
                *tool,
            ),
            goal=tool,
            action=tuple(
                Field(name, units[name], scale=self.options.joint_speed * period)
                for name in joints
            ),
            action_meaning='joint_displacement',
            frame=self.arm.base_frame,
            control_period=period,
            goal_low=tuple(self.workspace.low.tolist()),
            goal_high=tuple(self.workspace.high.tolist()),
            achieved_index=tuple(range(2 * len(names), 2 * len(names) + 3)),
            arm=trained_arm(self.robot, self.arm),
        )


def simulated_robot(robot: Robot, delay: float = 0.0, lag: float = 0.0) -> ControlledArm:
    """
    Return the simulation of a robot at joint level, behind its controllers.

    It has forces and contacts, unless the URDF has no masses: see ``no_forces``.
    """
    plant: JointDrivenPlant
    task = robot.simulation_task
    try:
        plant = JointPlant(task, robot.scene) if task else UrdfPlant(robot)
    except MassError as error:
        plant = KinematicPlant(robot, str(error))
    return ControlledArm(plant, ArmModel(robot, plant.description(robot.name)), delay, lag)
