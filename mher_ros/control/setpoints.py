"""
Where an arm is commanded to be: a set-point that advances by one command period at a time.

Consecutive set-points keep every limit over one command period, however late or early the commands
are: a controller may carry out a command in one period, and nothing behind us smooths it.

A policy observes the set-point, not the measured tool: a real arm follows a command a tenth of a
second late, and a policy that was trained without that delay would oscillate about its goal. How
far the arm is from its set-point is watched.
"""

from __future__ import annotations

import abc
import math

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.joint_motion import JointMotion
from mher_ros.control.motion_limiter import MotionLimiter
import numpy as np
from numpy.typing import NDArray

__all__ = ['JointSetpoint', 'Setpoint', 'ToolSetpoint']

Vector = NDArray[np.float64]

SETTLING = 0.5
"""Time constant with which a tied set-point converges to the measured arm [s]."""
PLANNED = 0.85
"""Share of the accelerations that joints are planned with: a plan is only nearly right."""
SPEED = 0.98
"""The same for the tool's speed."""
TIED = 0.85
"""Share of the tool's limits that a tied set-point takes: the joints are not just where it is."""
BRAKING = 0.9
"""Share of the accelerations that a braking motion takes."""
CURVED = 0.6
"""Share of the tool's acceleration that the curvature of a braking motion may take."""
MISSING = 0.1
"""Share of the tool's speed by which what is asked for may be ahead of what joints can give."""
ALONG = 0.3
"""Least cosine between the tool velocity that is asked for and the one that joints can give."""
ATTEMPTS = 10
"""To come as near to what is asked for as is safe."""
LESS = 0.6
"""What the next attempt takes of what the last one had beyond braking."""
TURNS = 4
"""Attempts that keep their speed but turn back inside, where the last one would leave the box."""
TURN = 1.2
"""By how much, in terms of the velocity by which it would leave."""
BEND = 4.0
"""Curvature of a braking motion that is reckoned with beside a face of the box [1/m]."""
AWAY = 0.1
"""Share of its speed by which the tool moves away from a face that it is too close to."""
INSET = 0.005
"""Distance from the box that a braking motion keeps, as a share of its length."""
ON_A_FACE = 1e-9
"""Distance from the box that is rounding [m]."""
SINGULAR = 1e-4 * np.eye(3)
"""Keeps such a turn small near a singularity [m^2]."""
ROUNDING = 1.0 - 1e-9
STILL = 1e-9
"""Velocity of a joint or tool that is rest [rad/s or m/s]."""


class Setpoint(abc.ABC):
    """The set-point of the tool, and of the joints where these are commanded; base frame."""

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

    def __init__(self, arm: ArmModel, limiter: MotionLimiter, period: float, tied: bool) -> None:
        """
        Advance by ``period`` [s] with each command.

        ``tied``: the arm is commanded by velocities, so it is not known where these take it, and
        the set-point slowly converges to where the arm is measured.
        """
        self._arm, self._limiter, self._period, self.tied = arm, limiter, period, tied
        self._kept = math.exp(-period / SETTLING)

    @abc.abstractmethod
    def begin(self, positions: Vector) -> None:
        """Put it at rest where the joints are measured (n,)."""

    @abc.abstractmethod
    def rest(self) -> None:
        """Take the arm to be at rest where it was commanded last."""

    @abc.abstractmethod
    def go_on(self, seconds: float) -> None:
        """Go on with the last velocity, as an arm does that is commanded by velocities."""

    def expect(self, gap: float) -> None:
        """Keep room to brake before the box by commands that are ``gap`` [s] apart."""
        self._limiter.count_on(self._period / gap)

    @abc.abstractmethod
    def look(self, positions: Vector) -> None:
        """Prepare the next command, by where the joints are measured (n,)."""

    @abc.abstractmethod
    def advance(self, wanted: Vector) -> None:
        """Advance by one period with a tool velocity near ``wanted`` (3,) [m/s]."""

    @abc.abstractmethod
    def brake(self) -> None:
        """Advance by one period, slowing down."""

    @property
    @abc.abstractmethod
    def is_at_rest(self) -> bool:
        """Whether the last command asked for no motion."""


class ToolSetpoint(Setpoint):
    """For an arm that is commanded by poses or velocities of its tool."""

    def begin(self, positions: Vector) -> None:
        """Put it at the tool."""
        self.tool_position, self.orientation = self._arm.tool_pose(positions)
        self.rest()

    def rest(self) -> None:
        """Take the tool to be at rest."""
        self.tool_velocity = np.zeros(3)

    def go_on(self, seconds: float) -> None:
        """Go on with the velocity of the tool."""
        self.tool_position = self.tool_position + self.tool_velocity * seconds

    def look(self, positions: Vector) -> None:
        """Converge to the tool if tied to it."""
        if self.tied:
            tool = self._arm.tool_position(positions)
            self.tool_position = tool + (self.tool_position - tool) * self._kept

    def advance(self, wanted: Vector) -> None:
        """Advance within the limits of the tool."""
        self._limiter.velocity = self.tool_velocity
        self.tool_velocity = self._limiter.next(self.tool_position, wanted, self._period)
        self.tool_position = self.tool_position + self.tool_velocity * self._period

    def brake(self) -> None:
        """Slow down on a straight line."""
        self.advance(np.zeros(3))

    @property
    def is_at_rest(self) -> bool:
        """Whether the tool does not move."""
        return not self.tool_velocity.any()


class JointSetpoint(Setpoint):
    r"""
    For an arm that is commanded by positions or velocities of its joints.

    Each command is certified: from the set-point that it makes, the joints can brake to rest in
    proportion, :math:`\dot q(t) = \dot q_0 (1 - t / \tau)`, within the accelerations of joints and
    tool, inside the joints' ranges and the tool's box. What is asked for is blended with that
    braking motion until the result is certified, too. So there always is a command that is safe:
    the next one of the braking motion.
    """

    joint_positions: Vector
    joint_velocities: Vector

    def __init__(self, arm: ArmModel, limiter: MotionLimiter, period: float, tied: bool) -> None:
        super().__init__(arm, limiter, period, tied)
        limits = limiter.limits
        self._motion = JointMotion(arm)
        self._count = len(arm.joint_names)
        self._most_change = ROUNDING * arm.acceleration_limits * period
        self._change = PLANNED * self._most_change
        self._braking = BRAKING * arm.acceleration_limits
        share = TIED if tied else 1.0
        self._speed, self._acceleration = share * limits.speed, share * limits.acceleration
        self._planned = PLANNED * share * period
        self._others = np.empty(0)
        self._has_looked = False

    def begin(self, positions: Vector) -> None:
        """Put it at the joints."""
        count = self._count
        self.joint_positions, self._others = positions[:count].copy(), positions[count:]
        self.tool_position, self.orientation = self._arm.tool_pose(positions)
        self._motion.ease = self.joint_positions
        self.rest()

    def rest(self) -> None:
        """Take the joints to be at rest."""
        self.joint_velocities, self.tool_velocity = np.zeros(self._count), np.zeros(3)
        self._asked = self.tool_velocity
        self._slowing, self._outward = np.zeros(self._count), np.zeros(3)
        self._has_looked = False

    def go_on(self, seconds: float) -> None:
        """Go on with the velocities of the joints."""
        self.joint_positions = self.joint_positions + self.joint_velocities * seconds
        self.tool_position = self._tool_at(self.joint_positions)
        ahead = self._tool_at(self.joint_positions + self.joint_velocities * self._period)
        self.tool_velocity = self._asked = (ahead - self.tool_position) / self._period
        self._has_looked = False

    def look(self, positions: Vector) -> None:
        """Work out all that does not depend on what is asked for."""
        count = self._count
        self._others = positions[count:]
        if self.tied:
            measured = positions[:count]
            self.joint_positions = measured + (self.joint_positions - measured) * self._kept
        start = self._with_others(self.joint_positions)
        self.tool_position = self._arm.tool_position(start)
        self._motion.look(start, self.orientation)
        self._has_looked = True

    def advance(self, wanted: Vector) -> None:
        """Advance within the limits of joints and tool; MotionError if no motion was found."""
        if not self._has_looked:
            self.look(self._with_others(self.joint_positions))
        self._has_looked = False
        self._limiter.velocity = self._last_asked()
        slower = min(1.0, SPEED * self._speed / max(STILL, _length(wanted)))
        wanted = self._off_faces(slower * wanted)
        asked = self._limiter.next(self.tool_position, wanted, self._planned)
        self._asked = asked
        braked, velocities = self._braked(), self._found(asked)
        turns = 0
        for _ in range(ATTEMPTS):
            if self._try(velocities):
                return
            if self._outward.any() and turns < TURNS:
                turns += 1
                velocities = self._turned(velocities, -TURN * self._outward)
            else:
                velocities = braked + LESS * (velocities - braked)
        self._move(braked)

    def _off_faces(self, wanted: Vector) -> Vector:
        """
        Return a tool velocity (3,) that keeps off the faces of the box that it goes along.

        A braking motion of the joints is no straight line: by how much it may bend towards a face,
        the tool keeps away from it. At rest that is nothing.
        """
        speed = _length(self.tool_velocity)
        stopping = speed * speed / (2.0 * BRAKING * self._acceleration)
        room = 0.5 * BEND * stopping * stopping
        if room < ON_A_FACE:
            return wanted
        limiter, tool, away = self._limiter, self.tool_position, AWAY * speed
        # 1 on a face or outside, 0 where there is room enough.
        low = 1.0 - np.clip((tool - limiter.box_low) / room, 0.0, 1.0)
        high = 1.0 - np.clip((limiter.box_high - tool) / room, 0.0, 1.0)
        least = np.where(low > 0.0, away * low, -np.inf)
        most = np.where(high > 0.0, -away * high, np.inf)
        return wanted if (least > most).any() else np.clip(wanted, least, most)

    def _found(self, asked: Vector) -> Vector:
        """Return joint velocities (k,) that move the tool nearly as asked (3,) [m/s]."""
        found = self._motion.move(asked, self.joint_velocities, self._change)
        given = self._motion.tool_velocity(found)
        if given @ asked < ALONG * math.sqrt((given @ given) * (asked @ asked)):
            # Limits leave no way there: joints that moved all the same would only wander off.
            return self._braked()
        return found

    def _turned(self, velocities: Vector, by: Vector) -> Vector:
        """Return joint velocities (k,) that move the tool otherwise ``by`` (3,) [m/s]."""
        rows = self._motion.jacobian
        change = rows.T @ np.linalg.solve(rows @ rows.T + SINGULAR, by)
        most, last, limit = self._most_change, self.joint_velocities, self._arm.velocity_limits
        turned = np.clip(velocities + change, last - most, last + most)
        return np.clip(turned, -limit, limit)

    def _last_asked(self) -> Vector:
        """Return the tool velocity (3,) that was asked for last, near to the one commanded."""
        missing = self._asked - self.tool_velocity
        share = MISSING * self._speed / max(STILL, _length(missing))
        return self.tool_velocity + min(1.0, share) * missing

    def brake(self) -> None:
        """Slow down as certified, or faster where that is certified, too."""
        self._has_looked = False
        braked = self._braked()
        if not self._try(braked):
            self._move(braked)
        self._asked = self.tool_velocity

    @property
    def is_at_rest(self) -> bool:
        """Whether no joint moves."""
        return not self.joint_velocities.any()

    def _braked(self) -> Vector:
        """Return the next velocities (k,) of the certified braking motion."""
        speed = np.abs(self.joint_velocities).max()
        slowing = np.abs(self._slowing).max()
        if speed <= slowing or speed <= STILL:
            return np.zeros(self._count)
        return self.joint_velocities - self._slowing

    def _try(self, velocities: Vector) -> bool:
        """
        Command these velocities (k,) if they, and braking from there, keep every limit.

        If the box alone is in the way, ``_outward`` is by how much they leave it (3,) [m/s].
        """
        period, most = self._period, self._acceleration
        self._outward = np.zeros(3)
        here, tool = self.joint_positions, self.tool_position
        there = here + velocities * period
        reached = self._tool_at(there)
        velocity = (reached - tool) / period
        speed = _length(velocity)
        if speed > self._speed or _length(velocity - self.tool_velocity) > most * period:
            return False
        # How the tool would be accelerated if the joints went on like this.
        curve = _length(self._tool_at(there + velocities * period) - 2.0 * reached + tool)
        curve /= period * period
        if curve > CURVED * most:
            return False
        fastest = float((np.abs(velocities) / self._braking).max())
        time = max(speed / (BRAKING * most - curve), fastest, period)
        end = there + velocities * (0.5 * time)
        arm = self._arm
        if not (
            (end <= np.maximum(arm.upper, here)).all()
            and (end >= np.minimum(arm.lower, here)).all()
        ):
            return False
        middle = self._tool_at(there + velocities * (0.25 * time))
        out = self._leaves_box(tool, reached, middle, self._tool_at(end))
        if out.any():
            self._outward = out * (2.0 / time)
            return False
        self._slowing = velocities * (period / time)
        self._set(velocities, there, reached)
        return True

    def _leaves_box(self, tool: Vector, start: Vector, middle: Vector, end: Vector) -> Vector:
        """
        Return how far out of its box the tool would come (3,) [m], with signs.

        It moves to ``start``, and brakes by way of ``middle`` to ``end``, nearly on a parabola.
        From outside it may not go farther out.
        """
        limiter = self._limiter
        low = np.minimum(limiter.box_low, tool) - ON_A_FACE
        high = np.maximum(limiter.box_high, tool) + ON_A_FACE
        out = np.minimum(start - low, 0.0) + np.maximum(start - high, 0.0)
        inset = INSET * _length(end - start)
        bend = 2.0 * (start + end - 2.0 * middle)
        slope = end - start - bend
        farthest = end
        with np.errstate(divide='ignore', invalid='ignore'):
            turns_at = -0.5 * slope / bend
        turns = (turns_at > 0.0) & (turns_at < 1.0)
        if turns.any():
            farthest = np.where(turns, start + 0.5 * slope * turns_at, end)
        for place in (farthest, end):
            beyond = np.minimum(place - low - inset, 0.0) + np.maximum(place - high + inset, 0.0)
            out = np.where(np.abs(beyond) > np.abs(out), beyond, out)
        return out

    def _move(self, velocities: Vector) -> None:
        """Command velocities (k,) of the braking motion, which was certified before."""
        there = self.joint_positions + velocities * self._period
        self._set(velocities, there, self._tool_at(there))

    def _set(self, velocities: Vector, positions: Vector, tool: Vector) -> None:
        self.tool_velocity = (tool - self.tool_position) / self._period
        self.joint_positions, self.joint_velocities = positions, velocities
        self.tool_position = tool

    def _tool_at(self, joint_positions: Vector) -> Vector:
        return self._arm.tool_position(self._with_others(joint_positions))

    def _with_others(self, joint_positions: Vector) -> Vector:
        """Return joints (n,): the commanded ones (k,), and the others as they are measured."""
        return np.concatenate((joint_positions, self._others))


def _length(vector: Vector) -> float:
    """Return the length of a vector (3,); several times faster than numpy's norm."""
    return math.sqrt(vector @ vector)
