"""The safety filter for outputs that command joints."""

import math

from mher_ros.control.filter.box_limit import BoxLimit
from mher_ros.control.filter.collision_limit import CollisionLimit, LATE, ObstacleLimit
from mher_ros.control.filter.motion_limiter import MotionLimiter
from mher_ros.control.filter.motion_qp import MotionError, MotionQP, NO_LIMIT
from mher_ros.control.filter.safety_filter import SafetyFilter
from mher_ros.control.filter.singularity_limit import SingularityLimit
from mher_ros.control.motion import JointVelocities, length, Motion
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.obstacle_slots import ObstacleSlots
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

PLANNED = 0.85  # share of the joints' accelerations for plans, which are approximate
SPEED = 0.98  # the same for the tool's speed
UNSURE = 0.85  # share of the tool's limits for velocities: where the arm is, is less certain
BRAKING = 0.9  # share of the accelerations that a braking motion uses
CURVED = 0.6  # share of the tool's acceleration for the curvature of a braking motion
MISSING = 0.1  # share of the tool's speed by which the asked velocity may exceed the possible one
ALONG = 0.3  # least cosine between the tool velocities that are asked for and possible
ATTEMPTS = 10  # to find a safe motion near the one that is asked for
LESS = 0.6  # factor of the difference from braking, from one attempt to the next
LESS_NEAR, COLLISIONS = 0.4, 3
"""The same factor if parts would come too close, and the number of such attempts."""
TURNS = 4  # attempts that keep their speed but turn back into the box
TURN = 1.2  # change of the velocity in such an attempt, relative to that out of the box
SINGULAR = 1e-4 * np.eye(3)  # limits such a change near a singularity [m^2]
SAMPLES, SAMPLED = 8, 0.95
"""Parts of a braking motion of joints that are checked; share of the acceleration for them."""
CUTS = 6  # QPs, each with planes that approximate the limits of the tool where the last left them
TOUCHES = 1e-3  # share by which the QP may exceed such a limit: its solution is certified anyway
ROUNDING = 1.0 - 1e-9
HELD = 0.1  # share of the speed below which a singularity holds the arm back
STILL = 1e-9  # velocity of a joint or tool that counts as rest [rad/s or m/s]


class JointFilter(SafetyFilter):
    r"""
    For an arm that is commanded by positions or velocities of its joints.

    Each command is certified: from its set-point the joints can brake to rest in proportion,
    :math:`\dot q(t) = \dot q_0 (1 - t / \tau)`, within the accelerations of joints and tool, in
    the joints' ranges and the tool's box, and without a collision. Joint velocities that can be
    certified pass unchanged. Otherwise a QP finds the nearest motion within the linear limits,
    which is blended with the braking motion until the result is certified. So there is always a
    safe command: the next one of the braking motion.
    """

    joint_positions: Vector
    joint_velocities: Vector

    def __init__(
        self, arm: ArmModel, limiter: MotionLimiter, period: float, is_velocity: bool
    ) -> None:
        super().__init__(arm, limiter, period, is_velocity)
        limits = limiter.limits
        self._qp, self._singularity = MotionQP(arm), SingularityLimit(arm)
        self._count = len(arm.joint_names)
        self._most_change = ROUNDING * arm.acceleration_limits * period
        self._change = PLANNED * self._most_change
        self._braking = BRAKING * arm.acceleration_limits
        share = UNSURE if is_velocity else 1.0
        self._speed, self._acceleration = share * limits.speed, share * limits.acceleration
        self._planned = PLANNED * share * period
        self._box = BoxLimit(arm, limiter, BRAKING * self._acceleration)
        self._others = np.empty(0)
        self._is_prepared = False
        self._time = period  # in which the joints brake after the last command
        collision = arm.collision
        self._fixed = [] if collision is None else [CollisionLimit(arm, collision, period)]
        self._obstacles: tuple[ObstacleSlots, ObstacleLimit] | None = None
        self._collisions: list[CollisionLimit] = self._fixed
        self._prepared_at = 0.0  # time at which distances were computed [s]
        # Displacements of commands that an arm with a delay has not carried out yet.
        late = math.ceil((arm.reaction_time + LATE) / period) if is_velocity else 0
        self._pending = np.zeros((late, self._count))
        self._room = np.zeros(self._count), np.zeros(self._count)

    def avoid(self, slots: ObstacleSlots) -> None:
        """Keep the arm away from the obstacles in ``slots``, too."""
        self._obstacles = slots, ObstacleLimit(self._arm, slots, self._period)

    def begin(self, positions: Vector) -> None:
        count = self._count
        self.joint_positions, self._others = positions[:count].copy(), positions[count:]
        self.tool_position, self.orientation = self._arm.tool_pose(positions)
        self._qp.nominal = self.joint_positions
        self._pending = np.zeros_like(self._pending)
        self.rest()

    def rest(self) -> None:
        self.joint_velocities, self.tool_velocity = np.zeros(self._count), np.zeros(3)
        self._asked = self.tool_velocity
        self._moves_joints = False
        self._slowing, self._outward = np.zeros(self._count), np.zeros(3)
        self._time, self._collides = self._period, False
        self._is_prepared = False

    def extrapolate(self, seconds: float) -> None:
        self.joint_positions = self.joint_positions + self.joint_velocities * seconds
        self.tool_position = self._tool_at(self.joint_positions)
        ahead = self._tool_at(self.joint_positions + self.joint_velocities * self._period)
        self.tool_velocity = self._asked = (ahead - self.tool_position) / self._period
        self._pending = self._pending.copy()
        self._pending[-1] += self.joint_velocities * seconds
        self._is_prepared = False

    def prepare(self, positions: Vector) -> None:
        """Compute everything that does not depend on the motion that is asked for."""
        count = self._count
        self._others = positions[count:]
        if self.is_velocity:
            measured = positions[:count]
            self.joint_positions = measured + (self.joint_positions - measured) * self._kept
            self._room = self._find_room(measured)
        start = self._with_others(self.joint_positions)
        self.tool_position = self._arm.tool_position(start)
        self._qp.prepare(start, self.orientation, self._room)
        self._prepare_collisions(start)
        self._is_prepared = True

    def _prepare_collisions(self, start: Vector) -> None:
        """Compute distances at joint positions (n,)."""
        self._collisions = self._fixed
        if self._obstacles is not None and self._obstacles[0].is_used.any():
            self._obstacles[1].now = self.now
            self._collisions = [*self._fixed, self._obstacles[1]]
        self.obstruction, self._prepared_at = '', self.now
        if not self._collisions:
            return
        fastest = np.abs(self.joint_velocities) + self._most_change
        # While it accelerates, the next braking motion takes a little longer than the last.
        time = self._time + 2.0 * self._period
        for one in self._collisions:
            one.prepare(start, fastest, time, self._room if self.is_velocity else None)
        self.obstruction = '; '.join(
            one.obstruction for one in self._collisions if one.obstruction
        )

    @property
    def active_pairs(self) -> int:
        """Number of pairs of parts that limit the next command."""
        return sum(one.active_pairs for one in self._collisions)

    @property
    def nearest(self) -> tuple[str, str, float] | None:
        found = [nearest for one in self._collisions if (nearest := one.nearest) is not None]
        return min(found)[1] if found else None

    def _collision_rows(self) -> tuple[Vector, Vector]:
        """Return rows (m, k) and bounds (m,) of velocities that lead to no collision."""
        if not self._collisions:
            return np.empty((0, self._count)), np.empty(0)
        found = [one.rows(self.joint_velocities) for one in self._collisions]
        rows, bounds = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(bounds)

    def _find_room(self, measured: Vector) -> tuple[Vector, Vector]:
        """
        Return the possible displacements from the set-point, down and up (k,) [rad or m].

        The arm at ``measured`` (k,) may still carry out the commands of its reaction time.
        """
        pending = np.cumsum(self._pending[::-1], axis=0)
        ahead = measured - self.joint_positions
        least, most = ahead + pending.min(axis=0), ahead + pending.max(axis=0)
        return np.minimum(least, 0.0), np.maximum(most, 0.0)

    def advance(self, asked: Motion) -> None:
        """Advance within the limits of joints and tool."""
        if not self._is_prepared:
            self.prepare(self._with_others(self.joint_positions))
        self._is_prepared, self.singularity = False, ''
        if isinstance(asked, JointVelocities):
            self._move_joints(asked.values)
        else:
            self._move_near(self._along(asked.value))

    def _move_joints(self, velocities: Vector) -> None:
        """Command these velocities (k,) if they are safe, else the nearest safe ones."""
        if velocities.shape != (self._count,) or not math.isfinite(velocities.sum()):
            raise MotionError(f'{self._count} finite velocities are expected, got {velocities}')
        self._moves_joints = True
        if not (self._is_within_limits(velocities) and self._try(velocities)):
            self._move_near(self._nearest(velocities))
        # A motion of the tool that follows keeps this orientation.
        self._asked, self._qp.nominal = self.tool_velocity, self.joint_positions
        self.orientation = self._arm.tool_pose(self._with_others(self.joint_positions))[1]

    def _move_near(self, velocities: Vector) -> None:
        """Command the first certified blend of ``velocities`` (k,) with braking."""
        braked, turns, collisions = self._braked(), 0, 0
        for _ in range(ATTEMPTS):
            if self._try(velocities):
                return
            if self._outward.any() and turns < TURNS:
                turns += 1
                velocities = self._turned(velocities, -TURN * self._outward)
            else:
                less = LESS_NEAR if self._collides else LESS
                velocities = braked + less * (velocities - braked)
                collisions += self._collides
                if collisions > COLLISIONS:
                    break
        self._move(braked)

    def _along(self, wanted: Vector) -> Vector:
        """Return joint velocities (k,) for about this velocity of the tool (3,) [m/s]."""
        self._limiter.velocity = self._last_asked()
        slower = min(1.0, SPEED * self._speed / max(STILL, length(wanted)))
        wanted = self._box.off_faces(slower * wanted, self.tool_position, self.tool_velocity)
        rows = self._collision_rows()
        asked, found = self._moved(wanted, rows)
        share = 1.0 if found is None else self._singular_share(found)
        if share < HELD:
            condition = self._singularity.condition
            self.singularity = f'the condition number of the Jacobian is {condition:.0f}'
        if share < 1.0:
            self._limiter.velocity = self._last_asked()
            asked, found = self._moved(share * wanted, rows)
        self._asked = asked
        if found is None:
            return self._braked()
        given = self._qp.tool_velocity(found)
        if given @ asked < ALONG * math.sqrt((given @ given) * (asked @ asked)):
            # No motion in that direction is possible: the joints would only drift.
            return self._braked()
        return found

    def _singular_share(self, velocities: Vector) -> float:
        """Return the share of their speed that velocities (k,) may keep near a singularity."""
        positions = self._with_others(self.joint_positions)
        braking = 0.5 * self._time * self.joint_velocities
        return self._singularity.share(velocities, positions, self._qp.jacobian, braking)

    def _moved(self, wanted: Vector, rows: tuple[Vector, Vector]) -> tuple[Vector, Vector | None]:
        """Return the next possible tool velocity (3,), and joint velocities (k,) for it."""
        asked = self._limiter.next(self.tool_position, wanted, self._planned)
        return asked, self._qp.move(asked, self.joint_velocities, self._change, *rows)

    def _is_within_limits(self, velocities: Vector) -> bool:
        """Return whether velocities (k,) keep the joints' limits and room before the box."""
        least, most = self._limiter.velocities_at(self.tool_position)
        tool = self._qp.tool_velocity(velocities)
        change = np.abs(velocities - self.joint_velocities)
        return bool(
            (np.abs(velocities) <= self._arm.velocity_limits).all()
            and (change <= self._most_change).all()
            and (least <= tool).all()
            and (tool <= most).all()
        )

    def _nearest(self, wanted: Vector) -> Vector:
        """
        Return the joint velocities (k,) nearest to ``wanted`` within the linearised limits.

        The limits of the tool's speed and acceleration are balls: tangent planes are added where
        the solution leaves them.
        """
        jacobian, last = self._qp.jacobian[:3], self.tool_velocity
        least, most = self._limiter.velocities_at(self.tool_position)
        near, near_bounds = self._collision_rows()
        rows = np.concatenate((jacobian, near))
        lower = np.concatenate((least, np.full(len(near), -NO_LIMIT)))
        upper = np.concatenate((most, near_bounds))
        speed, change = SPEED * self._speed, self._planned * self._acceleration
        low, high = self._qp.joint_limits(self.joint_velocities, self._change)
        nearest = self._braked()
        for _ in range(CUTS):
            found = self._qp.nearest(wanted, low, high, rows, lower, upper)
            if found is None:
                break
            nearest, velocity = found, jacobian @ found
            normals, radii = [], []
            for centre, radius in ((np.zeros(3), speed), (last, change)):
                away = velocity - centre
                size = length(away)
                if size > radius * (1.0 + TOUCHES):
                    normals.append(away / size)
                    radii.append(radius + float(away @ centre) / size)
            if not normals:
                break
            rows = np.concatenate((rows, np.array(normals) @ jacobian))
            lower = np.concatenate((lower, np.full(len(radii), -NO_LIMIT)))
            upper = np.concatenate((upper, radii))
        return nearest

    def _turned(self, velocities: Vector, by: Vector) -> Vector:
        """Return joint velocities (k,) that change the tool's velocity ``by`` (3,) [m/s]."""
        rows = self._qp.jacobian[:3]
        change = rows.T @ np.linalg.solve(rows @ rows.T + SINGULAR, by)
        most, last, limit = self._most_change, self.joint_velocities, self._arm.velocity_limits
        turned = np.clip(velocities + change, last - most, last + most)
        return np.clip(turned, -limit, limit)

    def _last_asked(self) -> Vector:
        """Return the last tool velocity that was asked for (3,), near the commanded one."""
        missing = self._asked - self.tool_velocity
        share = MISSING * self._speed / max(STILL, length(missing))
        return self.tool_velocity + min(1.0, share) * missing

    def brake(self) -> None:
        """Slow down as certified, or faster if that can be certified."""
        self._is_prepared = False
        if self.is_at_rest:
            self._time, self._slowing = self._period, self.joint_velocities
            self._set(self.joint_velocities, self.joint_positions, self.tool_position)
            self._asked = self.tool_velocity
            return
        self._prepare_collisions(self._with_others(self.joint_positions))
        braked = self._braked()
        if not self._try(braked):
            self._move(braked)
        self._asked = self.tool_velocity

    @property
    def is_at_rest(self) -> bool:
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

        If only the box prevents it, ``_outward`` is the velocity out of the box (3,) [m/s].
        """
        period, most = self._period, self._acceleration
        self._outward, self._collides = np.zeros(3), False
        here, tool = self.joint_positions, self.tool_position
        there = here + velocities * period
        reached = self._tool_at(there)
        velocity = (reached - tool) / period
        speed = length(velocity)
        if speed > self._speed or length(velocity - self.tool_velocity) > most * period:
            return False
        # How the tool would accelerate if the joints kept these velocities.
        curve = length(self._tool_at(there + velocities * period) - 2.0 * reached + tool)
        curve /= period * period
        if curve > CURVED * most:
            return False
        fastest = float((np.abs(velocities) / self._braking).max())
        time = max(speed / (BRAKING * most - curve), fastest, period)
        end = there + velocities * (0.5 * time)
        arm, (down, up) = self._arm, self._room
        if not (
            (end + up <= np.maximum(arm.upper, here + up)).all()
            and (end + down >= np.minimum(arm.lower, here + down)).all()
        ):
            return False
        if self._moves_joints and not self._brakes_slowly(there, velocities, time):
            return False
        middle = self._tool_at(there + velocities * (0.25 * time))
        turned = float(np.abs(velocities).sum()) * (0.5 * time)
        out = self._box.outside(tool, reached, middle, self._tool_at(end), turned)
        if out.any():
            self._outward = out * (2.0 / time)
            return False
        lasts = time + self.now - self._prepared_at
        if not all(one.is_clear(end - here, lasts) for one in self._collisions):
            self._collides = True
            return False
        self._time = time
        self._slowing = velocities * (period / time)
        self._set(velocities, there, reached)
        return True

    def _brakes_slowly(self, there: Vector, velocities: Vector, time: float) -> bool:
        """
        Return whether the tool keeps its limits while joints brake for ``time`` [s].

        Joints that hardly move the tool now may move it faster while they brake. This does not
        happen for velocities that come from a motion of the tool.
        """
        parts = np.linspace(0.0, 1.0, SAMPLES + 1)
        shares = 0.5 * time * parts * (2.0 - parts)
        postures = np.empty((len(shares), len(there) + len(self._others)))
        postures[:, : len(there)] = there + shares[:, None] * velocities
        postures[:, len(there) :] = self._others
        tools = self._arm.tool_positions(postures)
        seconds = time / SAMPLES
        speeds = np.diff(tools, axis=0) / seconds
        changes = np.diff(speeds, axis=0) / seconds
        return bool(
            (np.linalg.norm(speeds, axis=1) <= SPEED * self._speed).all()
            and (np.linalg.norm(changes, axis=1) <= SAMPLED * self._acceleration).all()
        )

    def _move(self, velocities: Vector) -> None:
        """Command velocities (k,) of the braking motion, which is already certified."""
        there = self.joint_positions + velocities * self._period
        self._set(velocities, there, self._tool_at(there))

    def _set(self, velocities: Vector, positions: Vector, tool: Vector) -> None:
        self.tool_velocity = (tool - self.tool_position) / self._period
        self.joint_positions, self.joint_velocities = positions, velocities
        if self.is_velocity:
            self._pending = np.concatenate((self._pending[1:], velocities[None] * self._period))
        self.tool_position = tool

    def _tool_at(self, joint_positions: Vector) -> Vector:
        return self._arm.tool_position(self._with_others(joint_positions))

    def _with_others(self, joint_positions: Vector) -> Vector:
        """Return joints (n,): the commanded ones (k,), and the others as measured."""
        return np.concatenate((joint_positions, self._others))
