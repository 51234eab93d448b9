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
"""Share of the error in orientation that is to be gone in a second, at first [1/s]."""
POSTURE_COST = 0.03
"""Weight of a rad of motion that is not towards the arm's home, in the same units."""
POSTURE_GAIN = 0.5
"""Share of the way home that is to be gone in a second, at first [1/s]."""
BRAKING = 5.0
"""Speed at which a joint may near its limit per rad that is left [1/s]."""
DAMPING = 1e-4
"""Weight of a rad of motion, squared; near a singularity it keeps the joints slow."""
SMALL = 1e-6 * np.eye(3)
"""Keeps the pull home finite near a singularity [m^2]."""
TOLERANCE = 1e-9
"""By which a joint's displacement may miss its limit [rad]."""


class MotionError(MherError):
    """No motion of the joints was found."""


class JointMotion:
    r"""
    Moves the joints so that the tool moves as asked and keeps its orientation.

    In each tick the displacement :math:`\Delta q` of the commanded joints solves

    .. math::

        \min \; \|J_p \Delta q - v\,dt\|^2 + c^2 \|J_r \Delta q - K dt\,e_r\|^2
        + p^2 \|\Delta q - N G dt\,(q_{home} - q)\|^2 + \lambda \|\Delta q\|^2

    where :math:`e_r` is the rotation that is left and :math:`N` leaves of a motion what does not
    move the tool: joints that are free to move keep near home, so that the elbow does not wander
    off while the tool goes from goal to goal. All this is subject to the limits of velocity, and
    of position: :math:`-dt\,B (q - q_{min}) \le \Delta q \le dt\,B (q_{max} - q)`. To stand still
    is always within the limits, so there always is a solution; a joint that is found beyond its
    range can only move back. The other joints of the chain are taken to stand still.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self._configuration = mink.Configuration(arm.model)
        count = len(arm.joint_names)
        self._dofs = np.array([int(np.flatnonzero(arm.order == i)[0]) for i in range(count)])
        self._task = _ToolMotion(arm.model, self._dofs)
        self._tasks: tuple[mink.Task, ...] = (self._task,)
        if arm.home is not None:
            self._tasks += (_Posture(self._task, arm.home, self._dofs),)
        self._limit = _JointLimit(arm, self._dofs)
        self._damping = DAMPING * np.eye(arm.model.nv)
        self._no_rows = np.empty((0, arm.model.nv))

    def solve(
        self, positions: Vector, tool_velocity: Vector, orientation: Vector, dt: float
    ) -> Vector:
        """
        Return velocities of the commanded joints (k,) [rad/s or m/s].

        ``positions`` are of the arm's ``state_names`` (n,), ``tool_velocity`` (3,) [m/s] and
        ``orientation`` (4,) (w, x, y, z), which the tool should keep, are in the base frame;
        ``dt`` [s] is the time until the next call.
        """
        _check(positions, tool_velocity, orientation, dt, self._arm)
        self._configuration.update(positions[self._arm.order])
        self._task.ask(tool_velocity * dt, orientation, dt)
        # What mink.solve_ik does, in half its time: limits of single joints are bounds to daqp.
        hessian, gradient = self._damping.copy(), np.zeros(len(self._damping))
        for task in self._tasks:
            part = task.compute_qp_objective(self._configuration)
            hessian += part.H
            gradient += part.c
        most = self._limit.greatest(self._configuration, dt)
        count = len(gradient)
        solution, _, code, _ = daqp.solve(
            hessian, gradient, self._no_rows, most[:count], -most[count:], primal_tol=TOLERANCE
        )
        if code != 1 or not math.isfinite(solution.sum()):
            raise MotionError(
                f'no motion of the joints gives the tool the velocity {tool_velocity} m/s at '
                f'{dict(zip(self._arm.state_names, positions.tolist(), strict=True))}'
            )
        return solution[self._dofs] / dt


class _ToolMotion(mink.Task):
    """A displacement of the tool and an orientation, in one task along the base frame's axes."""

    def __init__(self, model: mujoco.MjModel, dofs: NDArray[np.int_]) -> None:
        super().__init__(cost=np.array((1.0,) * 3 + (ORIENTATION_COST,) * 3))
        self._site = model.site(TOOL).id
        self._all = np.zeros((6, model.nv))
        self.jacobian = np.zeros((6, model.nv))
        self._dofs = dofs
        self._weights = self.cost[:, None]
        self._wanted = np.zeros(6)
        self._orientation, self._left = np.empty(4), np.empty(3)

    def ask(self, displacement: Vector, orientation: Vector, dt: float) -> None:
        """Take a displacement (3,) [m] and the orientation to turn to, in a time ``dt`` [s]."""
        self._wanted[:3], self._target, self.dt = displacement, orientation, dt

    def compute_error(self, configuration: mink.Configuration) -> Vector:
        """Return what is left to do, negated (6,) [m, rad]."""
        rotation = configuration.data.site_xmat[self._site]
        mujoco.mju_mat2Quat(self._orientation, rotation)
        mujoco.mju_subQuat(self._left, self._target, self._orientation)  # in the tool's frame
        share = min(1.0, ORIENTATION_GAIN * self.dt)
        self._wanted[3:] = share * (rotation.reshape(3, 3) @ self._left)
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
    """A pull towards home of the joints as far as the tool does not move by it."""

    def __init__(self, tool: _ToolMotion, home: Vector, dofs: NDArray[np.int_]) -> None:
        super().__init__(cost=np.array((POSTURE_COST,)))
        self._tool, self._home, self._dofs = tool, home, dofs
        self._weights = np.zeros((tool.jacobian.shape[1],) * 2)
        self._weights[dofs, dofs] = POSTURE_COST**2
        self._pull = np.zeros(len(self._weights))

    def compute_error(self, configuration: mink.Configuration) -> Vector:
        """Return the way from home, negated, as far as it does not move the tool (nv,)."""
        share = min(1.0, POSTURE_GAIN * self._tool.dt)
        way = share * (self._home - configuration.data.qpos[self._dofs])
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


class _JointLimit(mink.Limit):
    """Ranges and velocities of the commanded joints."""

    def __init__(self, arm: ArmModel, dofs: NDArray[np.int_]) -> None:
        count = arm.model.nv
        self._rows = np.vstack((np.eye(count), -np.eye(count)))
        # The others are not moved by the task; a limit of 0 would only trouble the solver.
        lower, upper, speed = np.full(count, -np.inf), np.full(count, np.inf), np.ones(count)
        lower[dofs], upper[dofs], speed[dofs] = arm.lower, arm.upper, arm.velocity_limits
        self._bounds, self._speeds = np.concatenate((upper, -lower)), np.tile(speed, 2)

    def compute_qp_inequalities(
        self, configuration: mink.Configuration, dt: float
    ) -> mink.Constraint:
        """Return the greatest displacements, as rows for any solver."""
        return mink.Constraint(self._rows, self.greatest(configuration, dt))

    def greatest(self, configuration: mink.Configuration, dt: float) -> Vector:
        """Return the greatest displacements up and down (2 nv,) [rad or m]."""
        positions = configuration.data.qpos
        most = self._bounds - np.concatenate((positions, -positions))
        most *= min(1.0, BRAKING * dt)
        np.minimum(most, dt * self._speeds, out=most)
        return np.maximum(most, 0.0, out=most)


def _check(
    positions: Vector, tool_velocity: Vector, orientation: Vector, dt: float, arm: ArmModel
) -> None:
    shapes = positions.shape, tool_velocity.shape, orientation.shape
    if shapes != ((len(arm.state_names),), (3,), (4,)):
        raise MotionError(
            f'{len(arm.state_names)} positions, a velocity (3,) and an orientation (4,) are '
            f'expected, got shapes {shapes}'
        )
    total = positions.sum() + tool_velocity.sum() + orientation.sum()
    if not math.isfinite(total) or not 0.0 < dt < math.inf:
        raise MotionError(
            f'finite numbers and a time step above 0 are expected, got positions {positions}, '
            f'velocity {tool_velocity}, orientation {orientation}, time step {dt}'
        )
