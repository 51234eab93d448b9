"""Turns a learning agent's actions into commands, on the command path of deployment."""

from typing import Any

from mher_ros.control.action_decoder import ActionDecoder
from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import Motion
from mher_ros.control.motion_limiter import MotionLimits
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import GoalError, Workspace
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

LASTS = 1.5  # control periods after which the arm brakes if no further action follows


class ActionController:
    """Asks for the motion of the latest action, and for none when no action follows in time."""

    def __init__(
        self,
        interface: TaskInterface,
        arm: ArmModel,
        workspace: Workspace,
        output: str,
        **options: Any,
    ) -> None:
        """``output`` and ``options``: as ``CommandPath`` takes them."""
        self._decoder, self._lasts = ActionDecoder(interface), LASTS * interface.control_period
        box = workspace.box_low, workspace.box_high
        self.path = CommandPath(self, arm, box, output, **options)
        """Turns the motions that this controller asks for into commands."""
        self._motion: Motion | None = None
        self._until = 0.0

    def act(self, now: float, action: NDArray[np.floating]) -> None:
        """Ask for the motion of an action (k,); GoalError says why the arm may not move now."""
        monitor = self.path.monitor
        monitor.take_goal(now, is_new=not monitor.has_goal)
        self._motion, self._until = self._decoder.decode(action), now + self._lasts

    def begin(self, now: float) -> None:
        """Do nothing: a motion starts with an action."""

    def ask(self, now: float) -> Motion | None:
        """Return the motion of the latest action; None if it is too old."""
        return self._motion if now < self._until else None

    def progress(self, tool: Vector) -> tuple[float, float]:
        """Return a distance of 0: exploration need not reduce the distance from a goal."""
        return 0.0, 0.0


class SteppedArm:
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
