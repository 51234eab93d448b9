"""
Where an arm is sent: a point that is led on, tick by tick, and that the arm follows.

A policy looks at this point, not at the tool itself: a real arm answers a command a tenth of a
second late, and a policy that was trained without that delay would swing about its goal. The arm
is never far from the point; ``Reach`` and ``Guard`` see to that.
"""

from __future__ import annotations

import abc
import math

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.joint_motion import JointMotion
import numpy as np
from numpy.typing import NDArray

__all__ = ['JointReference', 'Reference', 'ToolReference']

Vector = NDArray[np.float64]

STILL: Vector = np.zeros(3)
SETTLING = 0.5
"""Time in which a reference that the arm does not know comes to where the arm is [s]."""
STUCK = 0.5
"""Part of what a stuck arm would lag behind, beyond which an arm is taken to be stuck."""
LAG = 0.004
"""Lag that says nothing, however slow the motion [m]."""
LEAST_LED = 0.3
"""Part of a velocity that joints must be able to give to the tool to move at all."""
LEAD = 0.1
"""For how long an arm that is told to stop goes on as it moves now [s]: about its own delay."""


class Reference(abc.ABC):
    """The point, and what the arm is told of it; everything is in the arm's base frame."""

    tool_position: Vector
    """The point (3,) [m]."""
    orientation: Vector
    """How the tool is to be turned (4,) (w, x, y, z)."""
    joint_positions: Vector | None = None
    """Joints (k,) [rad or m] that have the tool there, if the arm is told joints."""
    joint_velocities: Vector | None = None
    """How they move (k,) [rad/s or m/s], if the arm is told joints."""
    led: Vector = STILL
    """How the point moves (3,) [m/s]."""
    most_ahead: float = math.inf
    """How far the point can be from the tool of an arm that follows it [m]."""

    @abc.abstractmethod
    def begin(self, positions: Vector, velocities: Vector) -> None:
        """Put the point where the arm is, by its joints (n,), or where it can stop soonest."""

    @abc.abstractmethod
    def look(self, positions: Vector) -> None:
        """Prepare for the next ``advance``, by where the arm's joints are (n,) now."""

    @abc.abstractmethod
    def advance(self, velocity: Vector, dt: float, tool: Vector, positions: Vector) -> None:
        """
        Lead the point on with ``velocity`` (3,) [m/s] for ``dt`` [s].

        ``tool`` (3,) [m] and ``positions`` (n,) tell where the arm is.
        """


class ToolReference(Reference):
    """For an arm that is told how its tool is to be or to move."""

    def __init__(self, arm: ArmModel, tied: bool) -> None:
        """``tied``: it slowly comes to where the arm is, which is told velocities only."""
        self._arm, self._tied = arm, tied

    def begin(self, positions: Vector, velocities: Vector) -> None:
        """Put the point at the tool."""
        position, velocity = self._arm.tool(positions, velocities)
        self.tool_position = position if self._tied else position + LEAD * velocity
        self._ahead_of_stuck = np.zeros(3)
        _, self.orientation = self._arm.tool_pose(positions)

    def look(self, positions: Vector) -> None:
        """Do nothing: a point needs no preparation."""

    def advance(self, velocity: Vector, dt: float, tool: Vector, positions: Vector) -> None:
        """Lead the point on."""
        self.led = velocity
        point = self.tool_position + velocity * dt
        if self._tied:
            kept = math.exp(-dt / SETTLING)
            point = tool + (point - tool) * kept
            self._ahead_of_stuck = (self._ahead_of_stuck + velocity * dt) * kept
            self.most_ahead = LAG + STUCK * float(np.linalg.norm(self._ahead_of_stuck))
        self.tool_position = point


class JointReference(Reference):
    """For an arm that is told where its joints are to be, or how they are to move."""

    def __init__(self, arm: ArmModel, tied: bool) -> None:
        """``tied``: the joints are where the arm has them, which is told velocities only."""
        self._arm, self._tied = arm, tied
        self._motion = JointMotion(arm)
        self._count = len(arm.joint_names)
        self._point = ToolReference(arm, tied)
        self._has_looked = False

    def begin(self, positions: Vector, velocities: Vector) -> None:
        """Put the joints where they are, or where they can stop soonest, within their limits."""
        count, arm = self._count, self._arm
        fastest = arm.velocity_limits
        ahead = positions[:count] + LEAD * np.clip(velocities[:count], -fastest, fastest)
        self.joint_positions = np.clip(ahead, arm.lower, arm.upper)
        self.joint_velocities = np.zeros(count)
        self._motion.ease = self.joint_positions
        self._point.begin(positions, velocities)
        _, self.orientation = arm.tool_pose(positions)
        self.tool_position = arm.tool_position(self._with_others(positions))
        self._has_looked = False

    def look(self, positions: Vector) -> None:
        """Work out all that does not depend on where the tool is led."""
        self._start = positions if self._tied else self._with_others(positions)
        self._motion.look(self._start, self.orientation)
        if not self._tied:
            self.tool_position = self._arm.tool_position(self._start)
        self._has_looked = True

    def advance(self, velocity: Vector, dt: float, tool: Vector, positions: Vector) -> None:
        """Lead the joints on; MotionError if their limits leave no way."""
        if not self._has_looked:
            self.look(positions)
        self._has_looked = False
        speeds = self._motion.move(velocity)
        led = self._motion.tool_velocity(speeds)
        if led @ velocity < LEAST_LED * (velocity @ velocity):
            # Limits leave no way there: joints that moved all the same would only wander off.
            speeds, led = np.zeros_like(speeds), STILL
        self.joint_velocities, self.led = speeds, led
        self.joint_positions = self._start[: self._count] + speeds * dt
        if self._tied:
            self._point.advance(led, dt, tool, positions)
            self.tool_position = self._point.tool_position
            self.most_ahead = self._point.most_ahead
        else:
            self.tool_position = self.tool_position + led * dt

    def _with_others(self, positions: Vector) -> Vector:
        """Return the reference's joints, with those that are not commanded as they are (n,)."""
        assert self.joint_positions is not None
        return np.concatenate((self.joint_positions, positions[self._count :]))
