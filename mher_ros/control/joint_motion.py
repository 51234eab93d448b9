"""From a velocity of the tool to velocities of the joints, with their limits inside the solve."""

from __future__ import annotations

import math

import daqp
from mher_ros.control.arm_model import ArmModel, TOOL
from mher_ros.errors import MherError
import mink
import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

__all__ = ['JointMotion', 'MotionError']

Vector = NDArray[np.float64]

ORIENTATION_COST = 0.1
"""Weight of a rad of error in orientation against a metre of error in position."""
ORIENTATION_GAIN = 5.0
"""Speed of turning per rad that is left [1/s]."""
POSTURE_COST = 0.03
"""Weight of a rad of motion that is not towards where it is at ease, in the same units."""
POSTURE_GAIN = 0.5
"""Speed of a joint towards where it is at ease per rad that is left [1/s]."""
BRAKING = 0.5
"""Share of a joint's acceleration that is counted on to brake before its position limit."""
REACTION = 0.2
"""Time that a joint keeps free before its position limit at its speed [s]: 5 1/s near to it."""
DAMPING = 1e-3
"""Weight of a rad of motion, squared; near a singularity it keeps the joints slow."""
SMALL = 1e-6 * np.eye(3)
"""Keeps that pull finite near a singularity [m^2]."""
TOLERANCE = 1e-9
"""By which a joint's velocity may miss its limit [rad/s]."""


class MotionError(MherError):
    """No motion of the joints was found."""


class JointMotion:
    r"""
    Moves the joints so that the tool moves as asked and keeps its orientation.

    The velocities :math:`\dot q` of the commanded joints solve

    .. math::

        \min \; \|J_p \dot q - v\|^2 + c^2 \|J_r \dot q - K e_r\|^2
        + p^2 \|\dot q - N G\,(q_{ease} - q)\|^2 + \lambda \|\dot q\|^2

    where :math:`e_r` is the rotation that is left and :math:`N` leaves of a motion what does not
    move the tool: joints that are free to move keep near where they were at ease, so that the
    elbow does not wander off while the tool goes from goal to goal. All this is subject to the
    limits of velocity, of acceleration, :math:`|\dot q - \dot q_{last}| \le a\,dt`, and of
    position: towards a limit at the distance :math:`d` a joint moves no faster than :math:`v` with
    :math:`v T + v^2 / 2 b \le d`, so that it can brake before it. A joint that is found beyond its
    range can only move back. Where braking before a limit would take more than the acceleration,
    the acceleration counts: there always is a solution. The other joints of the chain are taken to
    stand still.

    Almost all of the work is done by ``look``, before it is known how the tool is to move.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self._configuration = mink.Configuration(arm.model)
        count = len(arm.joint_names)
        self._dofs = np.array([int(np.flatnonzero(arm.order == i)[0]) for i in range(count)])
        self._task = _ToolMotion(arm.model, self._dofs)
        self._posture = _Posture(self._task, self._dofs)
        self._tasks: tuple[mink.Task, ...] = (self._task, self._posture)
        self._limit = _JointLimits(arm, self._dofs)
        self._damping = DAMPING * np.eye(arm.model.nv)
        self._no_rows = np.empty((0, arm.model.nv))
        self._rest, self._any = np.zeros(count), np.full(count, np.inf)

    def solve(self, positions: Vector, tool_velocity: Vector, orientation: Vector) -> Vector:
        """Return what ``move`` does after a ``look``, whatever the velocities were before."""
        self.look(positions, orientation)
        return self.move(tool_velocity, self._rest, self._any)

    @property
    def ease(self) -> Vector | None:
        """Where joints that are free to move are drawn to (k,) [rad or m]; None: nowhere."""
        return self._posture.ease

    @ease.setter
    def ease(self, positions: Vector | None) -> None:
        self._posture.ease = positions

    def look(self, positions: Vector, orientation: Vector) -> None:
        """
        Take where the arm is, and how its tool should be turned.

        ``positions`` are of the arm's ``state_names`` (n,); ``orientation`` (4,) (w, x, y, z) is
        in the base frame.
        """
        _check(self._arm, positions, orientation)
        self._positions = positions
        self._configuration.update(positions[self._arm.order])
        self._task.orientation = orientation
        # What mink.build_ik does, but for limits: those of single joints are bounds to daqp.
        hessian, gradient = self._damping.copy(), np.zeros(len(self._damping))
        for task in self._tasks:
            part = task.compute_qp_objective(self._configuration)
            hessian += part.H
            gradient += part.c
        self._hessian, self._gradient = hessian, gradient
        self._lower, self._upper = self._limit.velocities(self._configuration.data.qpos)

    def move(self, tool_velocity: Vector, last: Vector, change: Vector) -> Vector:
        """
        Return velocities of the commanded joints (k,) [rad/s or m/s].

        ``tool_velocity`` (3,) [m/s] is in the base frame. They differ from ``last`` (k,) by at
        most ``change`` (k,) [rad/s or m/s].
        """
        if tool_velocity.shape != (3,) or not math.isfinite(tool_velocity.sum()):
            raise MotionError(f'a finite velocity (3,) is expected, got {tool_velocity}')
        lower, upper, dofs = self._lower.copy(), self._upper.copy(), self._dofs
        lower[dofs] = np.clip(lower[dofs], last - change, last + change)
        upper[dofs] = np.clip(upper[dofs], last - change, last + change)
        solution, _, code, _ = daqp.solve(
            self._hessian,
            self._gradient - tool_velocity @ self._task.jacobian[:3],
            self._no_rows,
            upper,
            lower,
            primal_tol=TOLERANCE,
        )
        if code != 1 or not math.isfinite(solution.sum()):
            raise MotionError(
                f'no motion of the joints gives the tool the velocity {tool_velocity} m/s at '
                f'{dict(zip(self._arm.state_names, self._positions.tolist(), strict=True))}'
            )
        return np.asarray(solution)[self._dofs]

    def tool_velocity(self, joint_velocities: Vector) -> Vector:
        """Return how these velocities (k,) move the tool (3,) [m/s] where the arm is."""
        return self.jacobian @ joint_velocities

    @property
    def jacobian(self) -> Vector:
        """How the commanded joints move the tool where the arm is (3, k)."""
        return self._task.jacobian[:3, self._dofs]


class _ToolMotion(mink.Task):
    """A tool that stands still but for turning, in one task along the base frame's axes."""

    def __init__(self, model: mujoco.MjModel, dofs: NDArray[np.int_]) -> None:
        super().__init__(cost=np.array((1.0,) * 3 + (ORIENTATION_COST,) * 3))
        self._site = model.site(TOOL).id
        self._all = np.zeros((6, model.nv))
        self.jacobian = np.zeros((6, model.nv))
        self._dofs = dofs
        self._weights = self.cost[:, None]
        self._wanted = np.zeros(6)
        self._turned, self._left = np.empty(4), np.empty(3)
        self.orientation = np.array((1.0, 0.0, 0.0, 0.0))
        """How the tool should be turned (4,) (w, x, y, z)."""

    def compute_error(self, configuration: mink.Configuration) -> Vector:
        """Return the velocity that is wanted, negated (6,) [m/s, rad/s]."""
        rotation = configuration.data.site_xmat[self._site]
        mujoco.mju_mat2Quat(self._turned, rotation)
        mujoco.mju_subQuat(self._left, self.orientation, self._turned)  # in the tool's frame
        self._wanted[3:] = ORIENTATION_GAIN * (rotation.reshape(3, 3) @ self._left)
        return -self._wanted

    def compute_jacobian(self, configuration: mink.Configuration) -> Vector:
        """Return how the commanded joints move the tool (6, nv)."""
        model, data, rows = configuration.model, configuration.data, self._all
        mujoco.mj_jacSite(model, data, rows[:3], rows[3:], self._site)
        self.jacobian[:, self._dofs] = rows[:, self._dofs]
        return self.jacobian

    def compute_qp_objective(self, configuration: mink.Configuration) -> mink.Objective:
        """Return the weighted squares, as the base class does but for damping of its own."""
        jacobian = self._weights * self.compute_jacobian(configuration)
        error = self.cost * self.compute_error(configuration)
        return mink.Objective(jacobian.T @ jacobian, error @ jacobian)


class _Posture(mink.Task):
    """A pull of the joints to where they are at ease as far as the tool does not move by it."""

    def __init__(self, tool: _ToolMotion, dofs: NDArray[np.int_]) -> None:
        super().__init__(cost=np.array((POSTURE_COST,)))
        self._tool, self._dofs = tool, dofs
        self.ease: Vector | None = None
        """Where joints are at ease (k,) [rad or m]; None: wherever they are."""
        self._weights = np.zeros((tool.jacobian.shape[1],) * 2)
        self._weights[dofs, dofs] = POSTURE_COST**2
        self._pull = np.zeros(len(self._weights))

    def compute_error(self, configuration: mink.Configuration) -> Vector:
        """Return the velocity towards it, negated, that does not move the tool (nv,)."""
        if self.ease is None:
            return -self._pull
        way = POSTURE_GAIN * (self.ease - configuration.data.qpos[self._dofs])
        rows = self._tool.jacobian[:3, self._dofs]
        moved = rows.T @ dposv(rows @ rows.T + SMALL, rows @ way)[1]
        self._pull[self._dofs] = way - moved
        return -self._pull

    def compute_jacobian(self, configuration: mink.Configuration) -> Vector:
        """Return the commanded joints' identity (nv, nv)."""
        return self._weights / POSTURE_COST**2

    def compute_qp_objective(self, configuration: mink.Configuration) -> mink.Objective:
        """Return the weighted squares; after those of the tool, whose Jacobian it takes."""
        error = self.compute_error(configuration)
        return mink.Objective(self._weights, POSTURE_COST**2 * error)


class _JointLimits:
    """Ranges and velocities of the commanded joints."""

    def __init__(self, arm: ArmModel, dofs: NDArray[np.int_]) -> None:
        count = arm.model.nv
        # The others are not moved by the task; a limit of 0 would only trouble the solver.
        self._low, self._high = np.full(count, -np.inf), np.full(count, np.inf)
        self._speed, self._braking = np.ones(count), np.ones(count)
        self._low[dofs], self._high[dofs] = arm.lower, arm.upper
        self._speed[dofs], self._braking[dofs] = (
            arm.velocity_limits,
            BRAKING * arm.acceleration_limits,
        )

    def velocities(self, positions: Vector) -> tuple[Vector, Vector]:
        """Return the least and greatest velocities (nv,) [rad/s or m/s] at these positions."""
        return -self._towards(positions - self._low), self._towards(self._high - positions)

    def _towards(self, distance: Vector) -> Vector:
        """Return the greatest velocities (nv,) towards limits that far away."""
        distance = np.maximum(distance, 0.0)
        root = np.sqrt(REACTION**2 + 2.0 * distance / self._braking)
        with np.errstate(invalid='ignore'):  # no limit at all: infinity over infinity
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
