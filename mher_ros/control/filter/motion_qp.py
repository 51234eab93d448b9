"""A QP for joint velocities near the motion that is asked for, within linear limits."""

import math

import daqp
from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel, POSE_JOINTS, spare_rotation, TOOL
import mink
import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

Vector = NDArray[np.float64]

ORIENTATION_COST = 0.1
"""Weight of 1 rad of orientation error, relative to 1 m of position error."""
WEIGHTS = np.array((1.0,) * 3 + (ORIENTATION_COST,) * 3)
ORIENTATION_GAIN = 5.0  # rotational speed per rad of error [1/s]
POSTURE_COST = 0.03
"""Weight of 1 rad/s away from the motion to the nominal posture, in the same units."""
POSTURE_GAIN = 0.5  # speed of a joint towards its nominal position per rad of distance [1/s]
BRAKING = 0.5
"""Share of a joint's acceleration that is used to brake before its position limit."""
REACTION = 0.2
"""Time at its speed that a joint keeps from its position limit [s]; a gain of 5 1/s near it."""
DAMPING = 1e-3  # weight of squared joint velocities; keeps joints slow near a singularity
SMALL = 1e-6 * np.eye(3)  # keeps the null-space projection finite near a singularity [m^2]
NO_LIMIT = 1e30  # a bound that the solver ignores
TOLERANCE = 1e-9  # of a joint's velocity limit [rad/s]


class MotionError(MherError):
    """No motion of the joints was found."""


class MotionQP:
    r"""
    Moves the joints so that the tool moves as asked and keeps its orientation.

    The velocities :math:`\dot q` of the commanded joints solve

    .. math::

        \min \; \|J_p \dot q - v\|^2 + c^2 \|J_r \dot q - K e_r\|^2
        + p^2 \|\dot q - N G\,(q_{nominal} - q)\|^2 + \lambda \|\dot q\|^2

    where :math:`e_r` is the orientation error and :math:`N` projects into the null space of the
    tool's position: redundant joints stay near the ``nominal`` posture, so that the elbow does not
    drift while the tool moves from goal to goal. The constraints are the limits of velocity, of
    acceleration, :math:`|\dot q - \dot q_{last}| \le a\,dt`, and of position: towards a limit at
    the distance :math:`d` a joint moves no faster than :math:`v` with
    :math:`v T + v^2 / 2 b \le d`, so that it can brake before the limit. A joint outside its range
    can only move back. If braking before a limit would need more than the acceleration limit, the
    latter holds: there is always a solution. The other joints of the chain are assumed to be at
    rest.

    An arm with fewer than six joints reaches positions, not poses: the orientation gives way.
    :math:`J_r \dot q` is replaced by :math:`J_r \dot q - A (J_p \dot q - v)`, where :math:`A` is
    the rotation that a motion of the tool entails. So only its null space keeps the orientation.

    ``prepare`` does almost all of the work, before the velocity of the tool is known.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self._configuration = mink.Configuration(arm.model)
        count = len(arm.joint_names)
        dofs = self._dofs = np.array(
            [int(np.flatnonzero(arm.order == i)[0]) for i in range(count)]
        )
        self.nominal: Vector | None = None
        """Nominal posture to which redundant joints move (k,) [rad or m]; None: there is none."""
        self._site = arm.model.site(TOOL).id
        self._all, self._jacobian = np.zeros((6, arm.model.nv)), np.zeros((6, arm.model.nv))
        self._limit = _JointLimits(arm, dofs)
        self._damping = DAMPING * np.eye(arm.model.nv)
        self._gives_way = count < POSE_JOINTS
        self._follow = self._jacobian[:3]  # gives the gradient of the tool's velocity
        self._posture_weights = np.zeros_like(self._damping)
        self._posture_weights[dofs, dofs] = POSTURE_COST**2
        self._no_rows, self._identity = np.empty((0, arm.model.nv)), np.eye(count)

    def prepare(
        self, positions: Vector, orientation: Vector, room: tuple[Vector, Vector] | None = None
    ) -> None:
        """
        Take the arm's joint positions, and the orientation that its tool should have.

        ``positions``: of the arm's ``state_names`` (n,); ``orientation`` (4,) (w, x, y, z): in the
        base frame. ``room``: possible displacements, down and up, of the commanded joints by
        earlier commands that are still to be carried out (k,).
        """
        _check(self._arm, positions, orientation)
        self._positions = positions
        self._configuration.update(positions[self._arm.order])
        model, data, every, dofs = self._arm.model, self._configuration.data, self._all, self._dofs
        mujoco.mj_jacSite(model, data, every[:3], every[3:], self._site)
        self._jacobian[:, dofs] = every[:, dofs]
        rows = self._jacobian
        if self._gives_way:
            entailed, turned = spare_rotation(rows)
            rows = np.vstack((rows[:3], turned))
            self._follow = rows[:3] - ORIENTATION_COST**2 * entailed.T @ turned
        weighted = WEIGHTS[:, None] * rows
        error = WEIGHTS * -self._tool_correction(orientation)
        self._hessian = self._damping + weighted.T @ weighted + self._posture_weights
        self._gradient = error @ weighted
        self._gradient[dofs] -= POSTURE_COST**2 * self._posture_velocity()
        least = most = data.qpos
        if room is not None:
            least, most = least.copy(), most.copy()
            least[self._dofs] += room[0]
            most[self._dofs] += room[1]
        self._lower, self._upper = self._limit.velocities(least, most)

    def move(
        self,
        tool_velocity: Vector,
        last: Vector,
        change: Vector,
        rows: Vector | None = None,
        bounds: Vector | None = None,
    ) -> Vector | None:
        r"""
        Return velocities of the commanded joints (k,) [rad/s or m/s].

        ``tool_velocity`` (3,) [m/s] is in the base frame. They differ from ``last`` (k,) by at
        most ``change`` (k,) [rad/s or m/s], and :math:`r_i \dot q \le b_i` holds for ``rows``
        (m, k) and ``bounds`` (m,). None: these have no solution.
        """
        if tool_velocity.shape != (3,) or not math.isfinite(tool_velocity.sum()):
            raise MotionError(f'a finite velocity (3,) is expected, got {tool_velocity}')
        lower, upper, dofs = self._lower.copy(), self._upper.copy(), self._dofs
        lower[dofs] = np.clip(lower[dofs], last - change, last + change)
        upper[dofs] = np.clip(upper[dofs], last - change, last + change)
        limits = self._no_rows
        if rows is not None and bounds is not None and len(rows):
            limits = np.zeros((len(rows), len(lower)))
            limits[:, dofs] = rows
            upper = np.append(upper, bounds)
            lower = np.append(lower, np.full(len(bounds), -NO_LIMIT))
        solution, _, code, _ = daqp.solve(
            self._hessian,
            self._gradient - tool_velocity @ self._follow,
            limits,
            upper,
            lower,
            primal_tol=TOLERANCE,
        )
        if code != 1 and len(limits):
            return None
        if code != 1 or not math.isfinite(solution.sum()):
            raise MotionError(
                f'no motion of the joints gives the tool the velocity {tool_velocity} m/s at '
                f'{dict(zip(self._arm.state_names, self._positions.tolist(), strict=True))}'
            )
        return np.asarray(solution)[self._dofs]

    def joint_limits(self, last: Vector, change: Vector) -> tuple[Vector, Vector]:
        """
        Return the least and the largest velocities (k,) of the joints.

        They differ from ``last`` (k,) by at most ``change`` (k,).
        """
        least, most = last - change, last + change
        dofs = self._dofs
        return self._lower[dofs].clip(least, most), self._upper[dofs].clip(least, most)

    def nearest(
        self,
        velocities: Vector,
        low: Vector,
        high: Vector,
        rows: Vector,
        lower: Vector,
        upper: Vector,
    ) -> Vector | None:
        r"""
        Return the velocities (k,) nearest to ``velocities`` (k,) from ``low`` to ``high`` (k,).

        :math:`l_i \le r_i \dot q \le u_i` holds for ``rows`` (m, k), ``lower`` and ``upper`` (m,).
        None: there is no solution.
        """
        solution, _, code, _ = daqp.solve(
            self._identity,
            -velocities,
            rows,
            np.concatenate((high, upper)),
            np.concatenate((low, lower)),
            primal_tol=TOLERANCE,
        )
        return np.asarray(solution) if code == 1 and math.isfinite(solution.sum()) else None

    def tool_velocity(self, joint_velocities: Vector) -> Vector:
        """Return the tool's velocity (3,) [m/s] for joint velocities (k,), after ``prepare``."""
        return self.jacobian[:3] @ joint_velocities

    @property
    def jacobian(self) -> Vector:
        """Jacobian of the tool by the commanded joints (6, k), at the last ``prepare``."""
        return self._jacobian[:, self._dofs]

    def _tool_correction(self, orientation: Vector) -> Vector:
        """Return the velocity (6,) [m/s, rad/s] that corrects the tool's orientation."""
        rotation = self._configuration.data.site_xmat[self._site]
        now, error, wanted = np.empty(4), np.empty(3), np.zeros(6)
        mujoco.mju_mat2Quat(now, rotation)
        mujoco.mju_subQuat(error, orientation, now)  # in the tool's frame
        wanted[3:] = ORIENTATION_GAIN * (rotation.reshape(3, 3) @ error)
        return wanted

    def _posture_velocity(self) -> Vector:
        """Return the joint velocities (k,) to the nominal posture, in the tool's null space."""
        if self.nominal is None:
            return np.zeros(len(self._dofs))
        wanted = POSTURE_GAIN * (self.nominal - self._configuration.data.qpos[self._dofs])
        rows = self.jacobian[:3]
        return wanted - rows.T @ dposv(rows @ rows.T + SMALL, rows @ wanted)[1]


class _JointLimits:
    """Limits of position and velocity of the commanded joints."""

    def __init__(self, arm: ArmModel, dofs: NDArray[np.int_]) -> None:
        count = arm.model.nv
        # The task does not move the other joints; a limit of 0 would slow down the solver.
        self._low, self._high = np.full(count, -np.inf), np.full(count, np.inf)
        self._speed, self._braking = np.ones(count), np.ones(count)
        self._low[dofs], self._high[dofs] = arm.lower, arm.upper
        self._speed[dofs], self._braking[dofs] = (
            arm.velocity_limits,
            BRAKING * arm.acceleration_limits,
        )

    def velocities(self, least: Vector, most: Vector) -> tuple[Vector, Vector]:
        """Return the limits of the velocities (nv,) for positions from ``least`` to ``most``."""
        return -self._towards(least - self._low), self._towards(self._high - most)

    def _towards(self, distance: Vector) -> Vector:
        """Return the velocity limits (nv,) towards position limits at these distances."""
        distance = np.maximum(distance, 0.0)
        root = np.sqrt(REACTION**2 + 2.0 * distance / self._braking)
        with np.errstate(invalid='ignore'):  # no limit: infinity over infinity
            speed = 2.0 * distance / (REACTION + root)
        return np.fmin(speed, self._speed)


def _check(arm: ArmModel, positions: Vector, orientation: Vector) -> None:
    shapes = positions.shape, orientation.shape
    if shapes != ((len(arm.state_names),), (4,)):
        raise MotionError(
            f'{len(arm.state_names)} positions and an orientation (4,) are expected, '
            f'got shapes {shapes}'
        )
    if not math.isfinite(positions.sum() + orientation.sum()):
        raise MotionError(
            f'finite numbers are expected, got positions {positions}, orientation {orientation}'
        )
