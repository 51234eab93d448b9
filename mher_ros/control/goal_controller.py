"""Moves an arm's tool to goals: by a policy, and straight within the threshold."""

from collections.abc import Callable
import dataclasses
import math
from typing import Any

from mher_ros.control.action_decoder import ActionDecoder
from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import length, Motion, ToolVelocity
from mher_ros.control.observation import Observer
from mher_ros.control.safety_monitor import MOST_PATIENCE, SafetyOptions
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import Workspace
import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]
Policy = Callable[[Vector, Vector], NDArray[np.floating]]

ARRIVAL = 0.6  # share of the acceleration that is planned for coming to rest at the goal
GAIN, VELOCITY_GAIN = 20.0, 8.0
"""Speed per distance near the goal [1/s]; the latter if the loop contains the arm's delay."""
LEAVE = 1.5  # distance from the goal, in thresholds, from which the policy moves the tool again
HOLD, RELEASE = 1e-4, 4e-4
"""Distances from the goal at which the set-point comes to rest, and from which it moves again."""
NEAR, AWAY = 0.5, 0.9
"""Measured distances from the goal, in thresholds, at which the arm holds, and moves again."""
SAME = 0.02  # distance of two goals up to which the check of progress continues [m]
PATIENCE = 2.0  # episodes in which a policy for one arm must come nearer to its goal
STEP_EARLY = 0.5  # part of a command period by which a step of the policy may be early


class GoalController:
    """
    Asks for motions of the tool to goals.

    Outside the threshold of the goal the policy decides, at its own period. Within the threshold
    the tool moves straight to the goal, and then holds still. If the pose of the tool is measured
    there is no straight motion, which needs kinematics: the policy decides until the tool is
    within ``NEAR`` of the goal, and then the arm holds still while it remains within ``AWAY``.
    """

    def __init__(
        self,
        policy: Policy | None,
        interface: TaskInterface,
        arm: ArmModel,
        workspace: Workspace,
        output: str,
        box: tuple[Vector, Vector] | None = None,
        **options: Any,
    ) -> None:
        """
        Ask ``policy``; None: move straight to goals from anywhere in the same workspace.

        FitError if the policy cannot move the arm. ``output``, ``box`` and ``options``: as
        ``CommandPath`` takes them; without ``box`` that of the workspace, in the base frame.
        """
        self._policy, self.workspace = policy, workspace
        self._decoder = ActionDecoder(interface, workspace.scale)
        self._observe = Observer(interface, arm.state_names)
        self._step = interface.control_period
        self.threshold = interface.success_threshold * workspace.scale
        """Distance from the goal that counts as reached [m]."""
        known_box = None
        if policy is not None and interface.action_meaning == 'target_displacement':
            # In training the target never left the box of goals.
            known_box = workspace.low, workspace.high
        limits_joints = policy is not None and interface.is_for_one_arm
        if limits_joints:
            options['safety'] = _patient(options.get('safety') or SafetyOptions(), interface)
        box = box or (workspace.box_low, workspace.box_high)
        self._is_tracked = policy is not None and interface.is_tracked
        self.path = CommandPath(
            self, arm, box, output, known_box=known_box, moves_joints=limits_joints, **options
        )
        """Turns the motions that this controller asks for into commands."""
        self._goal: Vector | None = None
        self._started: Vector | None = None
        self._finishing = self._holding = False
        self._step_due = 0.0
        self._decided: Motion = ToolVelocity(np.zeros(3))
        self._previous = np.zeros(interface.previous_actions * len(interface.action))
        self.late = 0
        """Number of steps of the policy that were more than a control period late."""

    @property
    def goal(self) -> Vector | None:
        """Goal of the tool (3,) [m] in the base frame, or that of the measured pose, if any."""
        return self._goal if self.path.monitor.has_goal else None

    @property
    def tool(self) -> Vector | None:
        """Position of the tool (3,) [m] in the frame of the goal; None: it is not known."""
        return self.path.tracked if self._is_tracked else self.path.tool

    @property
    def distance(self) -> float:
        """Distance of the tool from its goal [m]; NaN without a goal or a state."""
        goal, tool = self.goal, self.tool
        return math.nan if goal is None or tool is None else length(tool - goal)

    @property
    def reached(self) -> bool:
        """Whether the tool is at its goal."""
        return self.distance <= self.threshold

    def take_goal(self, now: float, goal: ArrayLike, outside: str = 'reject') -> Vector:
        """Accept a goal (3,) [m] and return it, projected if needed; GoalError: it is refused."""
        taken = self.workspace.admit(goal, outside)
        # The same goal with noise must not restart the check of progress.
        is_new = self._started is None or length(taken - self._started) > SAME
        self.path.monitor.take_goal(now, is_new)
        if is_new:
            self._started = taken
        if self._goal is None or not np.array_equal(taken, self._goal):
            self._finishing = self._holding = False
        self._goal = taken
        return taken

    def begin(self, now: float) -> None:
        """Ask the policy at once when a motion starts."""
        self._step_due = now
        self._previous[:] = 0.0

    def progress(self, tool: Vector) -> tuple[float, float]:
        assert self._goal is not None
        if self._is_tracked:
            return self.distance, self.threshold
        return length(tool - self._goal), self.threshold

    def ask(self, now: float) -> Motion | None:
        """Return the motion of the policy, or straight to the goal; None at the goal."""
        goal, setpoint = self._goal, self.path.filter
        assert goal is not None
        if self._is_tracked:
            return self._ask_by_pose(now)
        left = goal - setpoint.tool_position
        distance = length(left)
        self._finishing = distance <= self.threshold * (LEAVE if self._finishing else 1.0)
        self._holding = self._finishing and distance <= (RELEASE if self._holding else HOLD)
        if self._policy is not None and now >= self._step_due - STEP_EARLY * self.path.period:
            self._decide(now)
        if self._holding:
            return None
        # From this speed the set-point can stop at the goal.
        braking = ARRIVAL * self.path.limits.acceleration
        gain = VELOCITY_GAIN if setpoint.is_velocity else GAIN
        most = 2.0 * distance / (1.0 / gain + math.sqrt(gain**-2 + 2.0 * distance / braking))
        if self._finishing or self._policy is None:
            return ToolVelocity(left * (most / max(distance, HOLD)))
        decided = self._decided
        if isinstance(decided, ToolVelocity) and (speed := length(decided.value)) > most:
            return ToolVelocity(decided.value * (most / speed))
        return decided

    def _ask_by_pose(self, now: float) -> Motion | None:
        """Return the motion of the policy, without kinematics; None near the goal."""
        most = (AWAY if self._holding else NEAR) * self.threshold
        self._finishing = self._holding = self.distance <= most
        if now >= self._step_due - STEP_EARLY * self.path.period:
            self._decide(now)
        return None if self._holding else self._decided

    def _decide(self, now: float) -> None:
        """Ask the policy for its next action, and decode it."""
        self._step_due += self._step
        if now > self._step_due:
            self.late += 1
            self._step_due = now + self._step
        assert self._policy is not None and self._goal is not None
        space = self.workspace
        seen = {}
        for source in self._observe.sources:
            position, velocity = self.path.tool_seen(source)
            tool = space.to_policy(position), space.velocity_to_policy(velocity)
            seen[source] = *tool, *self.path.joints_seen(source)
        action = self._policy(self._observe(seen, self._previous), space.to_policy(self._goal))
        self._decided = self._decoder.decode(action)
        if self._previous.size:  # near the goal no action of the policy is carried out
            done = np.zeros(len(action)) if self._finishing else action
            self._previous = np.concatenate((done, self._previous[: -len(action)]))


def _patient(safety: SafetyOptions, interface: TaskInterface) -> SafetyOptions:
    """Return options that allow a motion around an obstacle, first away from the goal."""
    episode = interface.episode_steps * interface.control_period
    timeout = min(PATIENCE * episode, MOST_PATIENCE)
    if not 0.0 < safety.progress_timeout < timeout:
        return safety
    return dataclasses.replace(safety, progress_timeout=timeout)
