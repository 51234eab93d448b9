"""Turns a learning agent's actions into commands, on the command path of deployment."""

from typing import Any

from mher_ros.control.action_decoder import ActionDecoder
from mher_ros.control.command_path import CommandPath
from mher_ros.control.motion import Motion
from mher_ros.interface import TaskInterface
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.workspace import Workspace
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
