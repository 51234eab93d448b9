"""Commands of a learning agent for a simulation that waits for each of them."""

from mher_ros.control.action_controller import ActionController
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import GoalError, Workspace
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


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

    def reset(self) -> None:
        """Start an episode."""
        self._controller = ActionController(
            self._interface,
            self._arm,
            self._workspace,
            'joint_trajectory',
            limits=self._limits,
            command_rate=1.0 / self._period,
            still_for=0.0,  # the states of a simulation are right
        )
        self._controller.path.makes_ahead = False
        self._steps = 0
        self._last: Vector | None = None

    def answer(
        self, positions: Vector, velocities: Vector, action: NDArray[np.floating] | None = None
    ) -> Vector:
        """
        Return the joint positions (k,) to command for one period after a joint state (n,).

        ``action`` (k,): of the agent, with the first state of a control period.
        """
        path, now = self._controller.path, self._steps * self._period
        path.take_state(now, round(now * 1e9), positions, velocities)
        if action is not None:
            try:
                self._controller.act(now, action)
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
