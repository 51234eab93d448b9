"""The task ``reach``: the tool of any robot moves to a position."""

import math
from typing import Any

from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.fit import trained_arm
from mher_ros.control.lockstep_controller import LockstepController
from mher_ros.interface import (
    Field,
    MOST_PREVIOUS,
    ORIENTATION,
    previous_fields,
    TaskInterface,
    Vector,
)
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ArmModel, axes_of
from mher_ros.robots.workspace import reach_workspace
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.random_starts import RandomStarts
from mher_ros.simulation.reach_goals import ReachGoals
from mher_ros.simulation.reach_options import check_options, ReachOptions
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.tracker import link_errors, Tracker, TrackerOptions
from mher_ros.tasks.task import Array, Observation, Task, TaskOptions
import mujoco
import numpy as np
from numpy.typing import NDArray


class Reach(Task):
    """Velocities of the joints, or of the tool, move the tool of any robot to a position."""

    # Actions go through the command path of deployment: for the agent, the safety filter is part
    # of the arm. The robot is simulated in this process, unless ``arm`` is given: then the arm is
    # commanded over topics, and this class only defines observations, goals and rewards.
    summary = 'the tool of any robot moves to a position, by actions of its joints or of the tool'
    default_options = ReachOptions(episode_steps=20, threshold=0.05)
    options: ReachOptions

    def __init__(
        self,
        options: TaskOptions | None = None,
        render_mode: str | None = None,
        arm: ArmModel | None = None,
    ) -> None:
        given = options if isinstance(options, ReachOptions) else self.default_options
        self.robot = robot = given.load_robot()
        displaced, randomise = link_errors(robot, given.tracker), given.randomise
        self._plant = plant = None
        if arm is None:
            self._plant = plant = simulated_robot(robot, displaced=displaced, randomise=randomise)
        self.arm = arm or ArmModel(robot, self._simulated().description(robot.name))
        if plant and robot.scene and self.arm.collision is None:
            raise OptionError(
                f'robot {robot.name} has obstacles (scene), which nothing avoids: '
                'collision.enabled true is expected, as goals and motions must keep away from them'
            )
        self.command_period = plant.period if plant else 1.0 / robot.command_rate
        """Time between two commands to the arm [s]."""
        self.commands_per_step = max(1, round(given.control_period / self.command_period))
        self.joint_names = self.arm.state_names
        self.limits = MotionLimits(robot.speed, robot.acceleration)
        self.workspace = reach_workspace(robot, self.arm.tool_position(self._home_positions))
        self.random_start = given.randomise > 0.0 or given.start != 'home'
        self.start: Vector | None = None
        """Joint positions at the start of the episode (k,) [rad or m]; None: home."""
        if given.start == 'last' and given.action == 'tool':
            raise OptionError('task.start takes home or random with task.action=tool')
        self.tracker: Tracker | None = None
        """What measures the pose of the tool in simulation; None: nothing does."""
        self._is_tracked = robot.tool_pose.is_tracked
        box = robot.tool_pose.goals if self._is_tracked else None
        if self._is_tracked and plant is None:
            if box is None:
                raise OptionError(
                    f'tool_pose.goals in the file of robot {robot.name} is needed to learn on an '
                    f'arm that is not simulated: the box of goals in {robot.tool_pose.frame}'
                )
        elif self._is_tracked:
            self.tracker = Tracker(robot, self.arm, given.tracker, self.command_period)
            self.random_start |= self.tracker.is_random
        if self.tracker is None and given.tracker != TrackerOptions():
            raise OptionError(
                'options task.tracker need a simulated arm and a measured pose of its tool: '
                'task.tool_pose=topic, or '
                f'tool_pose.source: topic in the file of robot {robot.name}'
            )
        self._previous = np.empty(0)  # entries of earlier actions, the newest action first
        self.tracked = np.zeros(3)
        """The latest measured position of the tool, in the frame of the goals [m]."""
        self._moves_joints, self._has_poses = given.action == 'joint', given.goal == 'pose'
        check_options(given, self.arm, self._is_tracked)
        self._goals = ReachGoals(
            robot,
            self.arm,
            self._home_positions,
            self.workspace,
            tracker=self.tracker,
            box=box,
            keeps_orientation=not self._moves_joints,
            turn=given.turn if self._has_poses else 0.0,
        )
        self._starts: RandomStarts | None = None
        if given.start == 'random':
            self._starts = RandomStarts(
                self.arm, self._home_positions, self.workspace, not self._moves_joints
            )
        super().__init__(given, render_mode)
        if plant is not None:
            self._chain = [plant.joint_names.index(name) for name in self.joint_names]
            self._controller = self.lockstep_controller()

    def lockstep_controller(self) -> LockstepController:
        """Return the command path for an arm that waits for each command."""
        return LockstepController(
            self.interface, self.arm, self.workspace, self.limits, self.command_period
        )

    def go_straight(self) -> None:
        """Move straight to the goal until the next reset; actions have no effect."""
        if self.tracker is not None:
            raise OptionError(
                'a straight line needs goals in the base frame of the arm; the goals of '
                f'{self.robot.name} are in the frame {self.interface.frame}'
            )
        self._controller.reset(self.goal[:3])

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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; ``options={'start': positions (k,)}`` sets the joint positions."""
        self.start = None
        if options and 'start' in options:
            self.start = np.array(options['start'], np.float64)
        elif self._starts is not None:
            if seed is None:
                seed = int(self.np_random.integers(2**32))
            self.start = self._starts.draw(seed)
        return super().reset(seed=seed, options=options)

    def start_options(self, last: Array | None) -> dict[str, Any] | None:
        if self.options.start != 'last' or last is None:
            return None
        return {'start': last[: len(self.arm.joint_names)]}

    def _reset_state(self, rng: np.random.Generator) -> None:
        self._previous = np.zeros(self.interface.previous_actions * len(self.interface.action))
        if self._plant is not None:
            self._plant.reset(rng, self.start)
            self._controller.reset()
            if self.tracker is not None:
                self.tracker.reset(rng)
                self._measure(self.tracker)

    def _sample_goal(self, rng: np.random.Generator) -> Vector:
        return self._goals.sample(rng)

    def move(self, action: NDArray[np.float32]) -> None:
        for index in range(self.commands_per_step):
            given = action if index == 0 else None
            self.advance(self._controller.answer(*self.joint_state(), given))
        self.remember(action)

    def remember(self, action: NDArray[np.float32]) -> None:
        if self._previous.size:
            self._previous = np.concatenate((action, self._previous[: -len(action)]))

    def advance(self, command: Vector | None) -> None:
        """Move the simulated arm for one command period, to joint positions (k,)."""
        self._simulated().advance(command)
        if self.tracker is not None:
            self._measure(self.tracker)

    def judged_goals(self, observations: Array) -> Array:
        if self.tracker is None:
            return super().judged_goals(observations)
        postures = np.atleast_2d(observations)[:, : len(self.joint_names)]
        return self.tracker.true_positions(postures).reshape(*observations.shape[:-1], 3)

    def _measure(self, tracker: Tracker) -> None:
        tracker.measure(*self._simulated().tool_pose())
        self.tracked = tracker.pose[0]

    def _observation(self, positions: Vector, velocities: Vector) -> Vector:
        if not self._moves_joints:
            return np.concatenate((*self.arm.tool(positions, velocities), self._previous))
        tool = self.tracked if self._is_tracked else self.arm.tool_position(positions)
        if self._has_poses:
            tool = np.concatenate((tool, axes_of(self.arm.tool_pose(positions)[1])))
        return np.concatenate((positions, velocities, tool, self._previous))

    def _declare(self) -> TaskInterface:
        low, high = self._goals.box
        period = self.commands_per_step * self.command_period
        tool = _axes('tool_position', 'm', source='tracked' if self._is_tracked else 'measured')
        if self._has_poses:
            tool = (*tool, *(Field(name, '1') for name in ORIENTATION))
        observation, action = self._joint_fields(period)
        first = len(observation)
        observation = (*observation, *tool)
        if not self._moves_joints:
            first, observation = 0, (*tool, *_axes('tool_velocity', 'm/s'))
            action = _axes('tool_target', 'm', scale=self.options.tool_speed * period)
        delay = self.robot.randomisation.scaled(self.options.randomise).delay
        previous = min(MOST_PREVIOUS, math.ceil(round(delay / period, 6)))
        return self._interface(
            task='reach',
            observation=(*observation, *previous_fields(action, previous)),
            goal=tool,
            action=action,
            action_meaning=f'{"joint" if self._moves_joints else "setpoint"}_displacement',
            frame=self.robot.tool_pose.frame if self._is_tracked else self.arm.base_frame,
            control_period=period,
            goal_low=tuple(low.tolist()),
            goal_high=tuple(high.tolist()),
            orientation_threshold=self.options.turn_threshold if self._has_poses else 0.0,
            achieved_index=tuple(range(first, first + len(tool))),
            arm=trained_arm(self.robot, self.arm),
        )

    def _joint_fields(self, period: float) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """Return what is observed of the joints, and actions that move them."""
        units = dict(zip(self.joint_names, self.arm.units, strict=True))
        scale = self.options.joint_speed * period
        return (
            *(Field(f'position_{name}', unit) for name, unit in units.items()),
            *(Field(f'velocity_{name}', f'{unit}/s') for name, unit in units.items()),
        ), tuple(Field(name, units[name], scale=scale) for name in self.arm.joint_names)


def _axes(name: str, unit: str, **values: Any) -> tuple[Field, ...]:
    return tuple(Field(f'{name}_{axis}', unit, **values) for axis in 'xyz')
