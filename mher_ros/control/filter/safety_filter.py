"""
The safety filter: returns a command near the motion that is asked for, within all limits.

It treats all controllers alike. It holds the set-point, the commanded state of the arm, and
advances it by one command period at a time. Consecutive set-points keep every limit over one
command period, even if commands are late or early: the arm's controller may carry out a command in
one period without smoothing it.
"""

import abc
import math

from mher_ros.control.filter.motion_limiter import MotionLimiter
from mher_ros.control.filter.motion_qp import MotionError
from mher_ros.control.motion import Motion, ToolVelocity
from mher_ros.robots.arm_model import ArmModel
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

SETTLING = 0.5  # time constant with which the set-point of velocities converges to the arm [s]


class SafetyFilter(abc.ABC):
    """
    Advances the set-point of the tool, and of the joints if these are commanded; base frame.

    There is always a command that slows down within the limits: ``brake``.
    """

    tool_position: Vector
    """(3,) [m]"""
    tool_velocity: Vector
    """Its displacement by the last command over one command period (3,) [m/s]."""
    orientation: Vector
    """Of the tool (4,) (w, x, y, z)."""
    joint_positions: Vector | None = None
    """(k,) [rad or m], if joints are commanded."""
    joint_velocities: Vector | None = None
    """Displacement by the last command over one command period (k,) [rad/s or m/s]."""

    now = 0.0
    """Time of the next command [s]: obstacles may move until then."""
    obstruction = ''
    """What is too near to move on, for people; empty: nothing is."""
    singularity = ''
    """How near a singularity is that stops the last motion, for people; empty: none does."""

    def __init__(
        self, arm: ArmModel, limiter: MotionLimiter, period: float, is_velocity: bool
    ) -> None:
        """
        Advance by ``period`` [s] with each command.

        ``is_velocity``: the arm is commanded by velocities. They do not determine its position,
        so the set-point slowly converges to the measured one.
        """
        self._arm, self._limiter, self._period = arm, limiter, period
        self.is_velocity = is_velocity
        self._kept = math.exp(-period / SETTLING)

    @property
    def nearest(self) -> tuple[str, str, float] | None:
        """Two parts with little room between them, and their distance [m]; None: none have."""
        return None

    def __copy__(self) -> 'SafetyFilter':
        """Return a shallow copy; copy.copy would take five times as long, for each command."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    @abc.abstractmethod
    def begin(self, positions: Vector) -> None:
        """Put the set-point at rest at the measured joint positions (n,)."""

    @abc.abstractmethod
    def rest(self) -> None:
        """Assume that the arm is at rest at the set-point."""

    @abc.abstractmethod
    def extrapolate(self, seconds: float) -> None:
        """Continue with the last velocity, as an arm that is commanded by velocities does."""

    def expect_gap(self, gap: float) -> None:
        """Keep room to brake before the box with commands every ``gap`` [s]."""
        self._limiter.plan_braking(self._period / gap)

    @abc.abstractmethod
    def prepare(self, positions: Vector) -> None:
        """Prepare the next command from the measured joint positions (n,)."""

    @abc.abstractmethod
    def advance(self, asked: Motion) -> None:
        """Advance by one period, nearly as asked; MotionError if no such motion was found."""

    @abc.abstractmethod
    def brake(self) -> None:
        """Advance by one period, slowing down."""

    @property
    @abc.abstractmethod
    def is_at_rest(self) -> bool:
        """Whether the last command was one of zero velocity."""


class ToolFilter(SafetyFilter):
    """For an arm that is commanded by poses or velocities of its tool."""

    def begin(self, positions: Vector) -> None:
        self.tool_position, self.orientation = self._arm.tool_pose(positions)
        self.rest()

    def rest(self) -> None:
        self.tool_velocity = np.zeros(3)

    def extrapolate(self, seconds: float) -> None:
        self.tool_position = self.tool_position + self.tool_velocity * seconds

    def prepare(self, positions: Vector) -> None:
        """Converge to the measured tool if the arm is commanded by velocities."""
        if self.is_velocity:
            tool = self._arm.tool_position(positions)
            self.tool_position = tool + (self.tool_position - tool) * self._kept

    def advance(self, asked: Motion) -> None:
        """Advance within the limits of the tool."""
        if not isinstance(asked, ToolVelocity):
            raise MotionError('joints cannot be moved by commands to the tool')
        self._limiter.velocity = self.tool_velocity
        self.tool_velocity = self._limiter.next(self.tool_position, asked.value, self._period)
        self.tool_position = self.tool_position + self.tool_velocity * self._period

    def brake(self) -> None:
        """Slow down on a straight line."""
        self.advance(ToolVelocity(np.zeros(3)))

    @property
    def is_at_rest(self) -> bool:
        return not self.tool_velocity.any()
