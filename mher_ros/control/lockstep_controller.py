"""Commands of a learning agent for a simulation that waits for each of them."""

from typing import Any

from mher_ros.control.action_controller import ActionController
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import GoalError, Workspace
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

OUTPUT = 'joint_trajectory'  # of the commands


class LockstepController:
    """
    Makes the commands for a simulation that waits for each of them: lockstep.

    Call ``reset`` for each episode and ``answer`` for each joint state. Its time starts at 0 at
    each reset, so that an episode depends on its states and actions only.
    """

    def __init__(
        self,
        interface: TaskInterface,
        arm: ArmModel,
        workspace: Workspace,
        limits: MotionLimits,
        period: float,
    ) -> None:
        """``period``: time between two states, each answered by one command [s]."""
        self._interface, self._arm, self._workspace = interface, arm, workspace
        self._limits, self._period = limits, period
        self.reset()

    def reset(self, goal: Vector | None = None) -> None:
        """Start an episode; the tool moves straight to ``goal`` (3,) [m] if there is one."""
        options: dict[str, Any] = {
            'limits': self._limits,
            'command_rate': 1.0 / self._period,
            'still_for': 0.0,  # the states of a simulation are right
        }
        common = self._interface, self._arm, self._workspace
        self._straight: GoalController | None = None
        if goal is None:
            self._controller = ActionController(*common, OUTPUT, **options)
            self._path = self._controller.path
        else:
            self._straight = GoalController(None, *common, OUTPUT, **options)
            self._path = self._straight.path
        self._path.makes_ahead = False
        self._goal, self._steps = goal, 0
        self._last: Vector | None = None

    def answer(
        self, positions: Vector, velocities: Vector, action: NDArray[np.floating] | None = None
    ) -> Vector:
        """
        Return the joint positions (k,) to command for one period after a joint state (n,).

        ``action`` (k,): of the agent, with the first state of a control period. It has no effect
        if the tool moves straight to a goal.
        """
        path, now = self._path, self._steps * self._period
        path.take_state(now, round(now * 1e9), positions, velocities)
        try:
            if self._straight is None and action is not None:
                self._controller.act(now, action)
            elif self._straight is not None and self._steps == 0:
                assert self._goal is not None
                self._straight.take_goal(now, self._goal, 'project')
        except GoalError:
            pass  # the monitor has stopped the arm: it brakes and ignores the action
        command = path.tick(now)
        self._steps += 1
        if command is not None:
            assert command.joint_positions is not None
            self._last = command.joint_positions
        elif self._last is None:
            self._last = positions[: len(self._arm.joint_names)]
        return self._last
