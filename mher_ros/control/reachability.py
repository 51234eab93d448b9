"""Whether an arm's tool can come to a place: inverse kinematics within the joints' limits."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import daqp
from mher_ros.control.arm_model import ArmModel, TOOL
from mher_ros.control.fit import FitError
from mher_ros.control.joint_motion import ORIENTATION_COST
from mher_ros.control.workspace import GoalError, Workspace
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ['Attempt', 'corners_of', 'NEAR', 'one_turn', 'Reachability']

Vector = NDArray[np.float64]

NEAR = 0.005
"""A place is reached if the tool comes to rest this near [m]."""
STRIDE = 0.03
"""Longest motion of the tool in an iteration [m]: near to one that is continuous."""
TURN = 0.3
"""Longest motion of a joint in an iteration [rad or m]."""
GAIN = 0.003
"""Least share of what is left that an iteration gains."""
VAIN = 4
"""Iterations without such a gain after which it is given up."""
EXACT = 1e-5
"""What is left when nothing more need be gained [m]."""
ITERATIONS = 100
"""Of one attempt, at most: 5 ms or so."""
NEARBY, NEARBY_STARTS = 0.3, 4
"""Standard deviation of postures near to one [rad or m], and how many are tried."""
STARTS = 12
"""How many postures are tried where the arm may start from any."""
DAMPING = 1e-4
"""Weight of a rad of motion, squared, in the first iteration."""


class Attempt(NamedTuple):
    """Where an arm comes to rest whose tool is sent to a place."""

    positions: Vector
    """Joints of ``state_names`` (n,) [rad or m]."""
    error: float
    """Distance of the tool from the place [m]."""
    turned: float
    """By how much the tool is turned against the orientation that it holds [rad]."""

    @property
    def reached(self) -> bool:
        """Whether the tool is near enough."""
        return self.error <= NEAR


class Reachability:
    """
    Sends a model of the arm to places, to see how near its tool gets.

    It moves joints within their limits, as ``JointMotion`` does, but in strides instead of ticks,
    and with its weight of the orientation: the arm comes to rest about there.
    The same question always has the same answer. It has data of its own: any one thread may ask
    while another commands the arm.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm, self._model = arm, arm.model
        self._data = mujoco.MjData(arm.model)
        self._site = arm.model.site(TOOL).id
        self._commanded = np.argsort(arm.order)[: len(arm.joint_names)]
        limited = arm.model.jnt_limited.astype(bool)
        self._lower = np.where(limited, arm.model.jnt_range[:, 0], -np.inf)
        self._upper = np.where(limited, arm.model.jnt_range[:, 1], np.inf)
        # Limits on one side only are not in the model.
        self._lower[self._commanded], self._upper[self._commanded] = arm.lower, arm.upper
        self._jacobian = np.zeros((6, arm.model.nv))

    def check_goal(self, goal: Vector, positions: Vector, orientation: Vector | None) -> None:
        """
        Raise GoalError if the tool cannot come to ``goal`` (3,) [m] from ``positions`` (n,).

        It holds ``orientation`` (4,) (w, x, y, z), or by default the one that it has there.
        """
        attempt = self.attempt(goal, positions, orientation)
        if attempt.reached:
            return
        away = f'{attempt.error:.3f} m from it'
        free = self._descend(goal, attempt.positions, None, self._commanded)
        if free.error <= NEAR:
            away += '; with the tool turned otherwise it would be reached'
        raise GoalError(
            f'a goal that the arm can reach with the tool turned as it is, within the limits of '
            f'its joints, is expected; at {_text(goal)} m it comes to rest {away}'
        )

    def check_workspace(self, workspace: Workspace) -> str:
        """
        Return which corners of a workspace are out of reach, whichever way the tool is turned.

        FitError if its centre is. Joints that are not commanded may be anywhere.
        """
        centre = (workspace.low + workspace.high) / 2.0
        attempt = self.attempt_from_anywhere(centre)
        if not attempt.reached:
            raise FitError(
                f'a workspace that the arm can reach is expected (workspace.origin of the robot); '
                f'its centre is at {_text(centre)} m in {self._arm.base_frame}, and the tool gets '
                f'no nearer than {attempt.error:.3f} m'
            )
        missed = [
            f'{_text(corner)} m by {attempt.error:.3f} m'
            for corner in corners_of(workspace)
            if not (attempt := self.attempt_from_anywhere(corner)).reached
        ]
        return ', '.join(missed)

    def attempt(
        self, goal: Vector, positions: Vector, orientation: Vector | None = None
    ) -> Attempt:
        """Return the best attempt from joints ``positions`` (n,), and from some near to them."""
        if orientation is None:
            orientation = self._orientation(positions[self._arm.order])
        random = np.random.default_rng(0)
        best = self._descend(goal, positions, orientation, self._commanded)
        for _ in range(NEARBY_STARTS):
            if best.reached:
                break
            start = positions[self._arm.order]
            start[self._commanded] += random.normal(0.0, NEARBY, len(self._commanded))
            start = np.clip(start, self._lower, self._upper)
            other = self._descend(goal, self._told(start), orientation, self._commanded)
            best = min(best, other, key=lambda attempt: attempt.error)
        return best

    def attempt_from_anywhere(self, goal: Vector) -> Attempt:
        """Return the best attempt from any posture, with the tool turned any way."""
        random, everything = np.random.default_rng(0), np.arange(self._model.nv)
        low, high = one_turn(self._lower, self._upper)
        starts = [(low + high) / 2.0, *random.uniform(low, high, (STARTS - 1, len(low)))]
        best: Attempt | None = None
        for start in starts:
            attempt = self._descend(goal, self._told(start), None, everything)
            if best is None or attempt.error < best.error:
                best = attempt
            if best.reached:
                break
        assert best is not None
        return best

    def _orientation(self, joints: Vector) -> Vector:
        # Not by the arm's own kinematics: whoever commands the arm is using those.
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        orientation = np.empty(4)
        mujoco.mju_mat2Quat(orientation, self._data.site_xmat[self._site])
        return orientation

    def _told(self, joints: Vector) -> Vector:
        """Return joints of the model in the order of ``state_names``."""
        positions = np.empty_like(joints)
        positions[self._arm.order] = joints
        return positions

    def _descend(
        self,
        goal: Vector,
        positions: Vector,
        orientation: Vector | None,
        moved: NDArray[np.int_],
    ) -> Attempt:
        """Move the tool to the goal in strides until it gets no nearer."""
        joints = best_joints = positions[self._arm.order]
        best = error = turned = math.inf
        vain, damping = 0, DAMPING
        for _ in range(ITERATIONS):
            rows, residual, away, turn = self._look(goal, joints, orientation)
            cost = math.hypot(away, ORIENTATION_COST * turn)
            vain = 0 if cost < best * (1.0 - GAIN) else vain + 1
            if cost < best:
                best, best_joints, error, turned = cost, joints, away, turn
                damping /= 2.0
                hessian = rows[:, moved].T @ rows[:, moved]
                gradient = -rows[:, moved].T @ residual
            else:
                damping *= 8.0  # as Levenberg and Marquardt do: close to a singularity
            if vain == VAIN or best < EXACT:
                break
            now = best_joints[moved]
            step, _, code, _ = daqp.solve(
                hessian + damping * np.eye(len(moved)),
                gradient,
                np.empty((0, len(moved))),
                np.clip(self._upper[moved] - now, 0.0, TURN),
                np.clip(self._lower[moved] - now, -TURN, 0.0),
            )
            if code != 1:
                break
            joints = best_joints.copy()
            joints[moved] += step
        return Attempt(self._told(best_joints), error, turned)

    def _look(
        self, goal: Vector, joints: Vector, orientation: Vector | None
    ) -> tuple[Vector, Vector, float, float]:
        """Return Jacobian, residual, distance [m] and rotation that is left [rad]."""
        model, data, jacobian = self._model, self._data, self._jacobian
        data.qpos[:] = joints
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], self._site)
        left = goal - data.site_xpos[self._site]
        away = math.sqrt(left @ left)
        left *= min(1.0, STRIDE / max(away, 1e-12))
        if orientation is None:
            return jacobian[:3], left, away, 0.0
        rotation, now, turn = data.site_xmat[self._site], np.empty(4), np.empty(3)
        mujoco.mju_mat2Quat(now, rotation)
        mujoco.mju_subQuat(turn, orientation, now)  # in the tool's frame
        residual = np.concatenate((left, ORIENTATION_COST * (rotation.reshape(3, 3) @ turn)))
        rows = np.vstack((jacobian[:3], ORIENTATION_COST * jacobian[3:]))
        return rows, residual, away, math.sqrt(turn @ turn)


def one_turn(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return limits of joints, cut to one turn about their middle, or about 0 without limits."""
    limited = np.isfinite(lower) & np.isfinite(upper)
    middle = np.zeros_like(lower)
    middle[limited] = (lower[limited] + upper[limited]) / 2.0
    return np.maximum(lower, middle - math.pi), np.minimum(upper, middle + math.pi)


def corners_of(workspace: Workspace) -> list[Vector]:
    """Return the eight corners (3,) [m] of where goals are taken."""
    edges = zip(workspace.low, workspace.high, strict=True)
    return [np.array(corner) for corner in itertools.product(*edges)]


def _text(position: ArrayLike) -> str:
    return '(' + ', '.join(f'{part:.3f}' for part in np.asarray(position)) + ')'
