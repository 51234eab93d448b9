"""Checks whether a tool can reach a position: inverse kinematics within joint limits."""

from collections.abc import Iterator
import itertools
import math
from typing import NamedTuple

import daqp
from mher_ros.control.filter.motion_qp import ORIENTATION_COST
from mher_ros.control.fit import FitError
from mher_ros.robots.arm_model import ArmModel, POSE_JOINTS, TOOL
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.obstacle_slots import ObstacleSlots
from mher_ros.robots.workspace import GoalError, point_text, Refusal, Workspace
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

NEAR = 0.005  # largest error of a position that counts as reached [m]
STRIDE = 0.03  # longest displacement of the tool in an iteration [m]
TURN = 0.3  # longest displacement of a joint in an iteration [rad or m]
GAIN = 0.003  # least share of the error by which an iteration must reduce it
VAIN = 4  # iterations without such a reduction after which the search ends
EXACT = 1e-5  # error at which the search ends [m]
ITERATIONS = 100  # of one search at most: about 5 ms
NEARBY, NEARBY_STARTS = 0.3, 4
"""Standard deviation of nearby initial postures [rad or m], and their number."""
STARTS = 12  # number of initial postures if the arm may start anywhere
DAMPING = 1e-4  # weight of squared joint displacements in the first iteration


class IkResult(NamedTuple):
    """Result of inverse kinematics: the posture nearest to a position of the tool."""

    positions: Vector
    """Joints of ``state_names`` (n,) [rad or m]."""
    error: float
    """Distance of the tool from the position [m]."""
    turned: float
    """Orientation error of the tool [rad]."""

    reached: bool
    """Whether the errors are small enough."""


class Reachability:
    """
    Solves the inverse kinematics of an arm.

    It moves joints within their limits with the cost of ``MotionQP``, but in larger steps: the arm
    comes to rest near the result. Results are deterministic. It has its own ``MjData``: one thread
    may use it while another one commands the arm.
    """

    def __init__(
        self,
        arm: ArmModel,
        slots: ObstacleSlots | None = None,
        keeps_orientation: bool = True,
        avoids_collisions: bool = True,
        most_turned: float = math.inf,
    ) -> None:
        """
        Take obstacles at run time, ``slots``: only this thread may change them.

        ``keeps_orientation``: whether motions keep the orientation of the tool, if the arm has the
        joints for that.
        ``avoids_collisions``: whether a goal with contacts is refused. This is of no use if the
        arm's controller chooses the posture. ``most_turned``: largest orientation error that
        counts as reached [rad].
        """
        self._keeps_orientation, self._most_turned = keeps_orientation, most_turned
        # As in ``MotionQP``.
        self._gives_way = keeps_orientation and len(arm.joint_names) < POSE_JOINTS
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
        self._collision, self._slots = arm.collision if avoids_collisions else None, slots
        self._distances = [
            (model, PairDistances(model))
            for model in (self._collision, slots)
            if model is not None
        ]

    def check_goal(self, goal: Vector, positions: Vector, orientation: Vector | None) -> None:
        """
        Raise GoalError if the tool cannot reach ``goal`` (3,) [m] from ``positions`` (n,).

        It keeps ``orientation`` (4,) (w, x, y, z), if it keeps one; None: the one at
        ``positions``. The arm must have a posture at the goal in which it touches nothing; how it
        gets there is not checked.
        """
        self._check_inside(goal)
        result = self.solve(goal, positions, orientation)
        if result.reached:
            touching = self.touching(result.positions)
            if touching is not None and not self._is_free_nearby(goal, positions, orientation):
                raise GoalError(
                    'a goal at which the arm touches nothing is expected; at '
                    f'{point_text(goal)} m {touching} would be too close to each other',
                    Refusal.IN_COLLISION,
                )
            return
        hint, held = '', ''
        if self._keeps_orientation and not self._gives_way:
            held = ' with this orientation of its tool'
        if held and self._descend(goal, result.positions, None, self._commanded).reached:
            hint = '; with another orientation of the tool it would be reached'
        raise GoalError(
            f'a goal that the arm can reach{held} is expected; at {point_text(goal)} m the error '
            f'is {result.error:.3f} m and {result.turned:.2f} rad{hint}',
            Refusal.OUT_OF_REACH,
        )

    def check_workspace(self, workspace: Workspace) -> str:
        """
        Return the corners of a workspace that are out of reach with any orientation of the tool.

        FitError if the centre is out of reach. Joints that are not commanded may be anywhere.
        """
        centre = (workspace.low + workspace.high) / 2.0
        result = self.solve_from_anywhere(centre)
        if not result.reached:
            raise FitError(
                f'a workspace that the arm can reach is expected (workspace.origin of the robot); '
                f'the tool comes no nearer than {result.error:.3f} m to its centre, '
                f'{point_text(centre)} m in {self._arm.base_frame}'
            )
        missed = [
            f'{point_text(corner)} m by {result.error:.3f} m'
            for corner in corners_of(workspace)
            if not (result := self.solve_from_anywhere(corner)).reached
        ]
        return ', '.join(missed)

    def solve(
        self, goal: Vector, positions: Vector, orientation: Vector | None = None
    ) -> IkResult:
        """Return the best result from joints ``positions`` (n,), and from some near them."""
        results = self._results(goal, positions, orientation)
        best = next(results)
        for other in results:
            if best.reached:
                break
            best = min(best, other, key=lambda result: result.error)
        return best

    def _results(
        self, goal: Vector, positions: Vector, orientation: Vector | None
    ) -> Iterator[IkResult]:
        """Yield the result from joints ``positions`` (n,), and from some near them."""
        if not self._keeps_orientation:
            orientation = None
        elif orientation is None:
            orientation = self._orientation(positions[self._arm.order])
        random = np.random.default_rng(0)
        yield self._search(goal, positions, orientation)
        for _ in range(NEARBY_STARTS):
            start = positions[self._arm.order]
            start[self._commanded] += random.normal(0.0, NEARBY, len(self._commanded))
            start = np.clip(start, self._lower, self._upper)
            yield self._search(goal, self._states(start), orientation)

    def _search(self, goal: Vector, start: Vector, orientation: Vector | None) -> IkResult:
        """Return the result from joints ``start`` (n,)."""
        result = self._descend(goal, start, orientation, self._commanded)
        if orientation is None or not self._gives_way:
            return result
        result = self._descend(goal, result.positions, None, self._commanded)
        turned = self._linearise(goal, result.positions[self._arm.order], orientation)[3]
        return result._replace(turned=turned)

    def _check_inside(self, goal: Vector) -> None:
        """Raise GoalError if a goal is inside something that does not move."""
        parts = [] if self._collision is None else [*self._collision.parts]
        for part in parts if self._slots is None else [*parts, *self._slots.obstacles]:
            # A wall for some links is none for the tool.
            if part.body == 0 and not part.links and part.solid.contains(goal):
                raise GoalError(
                    f'a goal outside of obstacles is expected; {point_text(goal)} m is inside '
                    f'{part.name}',
                    Refusal.INSIDE_OBSTACLE,
                )

    def touching(self, positions: Vector) -> str | None:
        """Return which parts are too close to each other in a posture (n,); None: none are."""
        for model, distances in self._distances:
            pairs = np.flatnonzero(np.isfinite(model.clearances))  # empty slots have none
            if not pairs.size:
                continue
            distances.move(positions[self._arm.order])
            left = distances.evaluate(pairs) - model.clearances[pairs]
            worst = int(np.argmin(left))
            # The filter stops the arm so much before the goal.
            if left[worst] < -NEAR:
                return ' and '.join(model.names(int(pairs[worst])))
        return None

    def _is_free_nearby(self, goal: Vector, positions: Vector, orientation: Vector | None) -> bool:
        """Return whether another posture reaches the goal without contact."""
        others = itertools.islice(self._results(goal, positions, orientation), 1, None)
        return any(result.reached and self.touching(result.positions) is None for result in others)

    def solve_from_anywhere(self, goal: Vector) -> IkResult:
        """Return the best result from several postures, with any orientation of the tool."""
        random, everything = np.random.default_rng(0), np.arange(self._model.nv)
        low, high = one_turn_limits(self._lower, self._upper)
        starts = [(low + high) / 2.0, *random.uniform(low, high, (STARTS - 1, len(low)))]
        results = []
        for start in starts:
            results.append(self._descend(goal, self._states(start), None, everything))
            if results[-1].reached:
                break
        return min(results, key=lambda result: result.error)

    def _orientation(self, joints: Vector) -> Vector:
        # Not by the arm's own kinematics: another thread uses it to command the arm.
        self._data.qpos[:] = joints
        mujoco.mj_kinematics(self._model, self._data)
        orientation = np.empty(4)
        mujoco.mju_mat2Quat(orientation, self._data.site_xmat[self._site])
        return orientation

    def _states(self, joints: Vector) -> Vector:
        """Return joints of the model in the order of ``state_names``."""
        positions = np.empty_like(joints)
        positions[self._arm.order] = joints
        return positions

    def _descend(
        self, goal: Vector, positions: Vector, orientation: Vector | None, moved: NDArray[np.int_]
    ) -> IkResult:
        """Move the tool towards the goal until the error no longer decreases."""
        joints = best_joints = positions[self._arm.order]
        best = error = turned = math.inf
        vain, damping = 0, DAMPING
        for _ in range(ITERATIONS):
            rows, residual, away, turn = self._linearise(goal, joints, orientation)
            cost = math.hypot(away, ORIENTATION_COST * turn)
            vain = 0 if cost < best * (1.0 - GAIN) else vain + 1
            if cost < best:
                best, best_joints, error, turned = cost, joints, away, turn
                damping /= 2.0
                hessian = rows[:, moved].T @ rows[:, moved]
                gradient = -rows[:, moved].T @ residual
            else:
                damping *= 8.0  # Levenberg-Marquardt
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
        reached = error <= NEAR and turned <= self._most_turned
        return IkResult(self._states(best_joints), error, turned, reached)

    def _linearise(
        self, goal: Vector, joints: Vector, orientation: Vector | None
    ) -> tuple[Vector, Vector, float, float]:
        """Return Jacobian, residual, position error [m] and orientation error [rad]."""
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


def one_turn_limits(lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
    """Return joint limits, restricted to one turn about their middle, or 0 without limits."""
    limited = np.isfinite(lower) & np.isfinite(upper)
    middle = np.zeros_like(lower)
    middle[limited] = (lower[limited] + upper[limited]) / 2.0
    return np.maximum(lower, middle - math.pi), np.minimum(upper, middle + math.pi)


def corners_of(workspace: Workspace) -> list[Vector]:
    """Return the eight corners (3,) [m] of the box of goals."""
    edges = zip(workspace.low, workspace.high, strict=True)
    return [np.array(corner) for corner in itertools.product(*edges)]
