"""Slows a motion of the tool towards a singularity."""

from mher_ros.robots.arm_model import ArmModel, condition_number, TOOL
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

AHEAD = 0.01  # displacement of the fastest joint after which the condition is compared [rad or m]
TOWARDS = 0.01  # relative increase of the condition by which the whole reduction applies
PARTS = (0.5, 1.0)  # of a braking motion, after which the condition is computed
SLOWEST = 0.2  # least share of the speed if the arm only slows down


class SingularityLimit:
    """
    The share of its speed that a motion of the tool may keep, by the condition number.

    The share is 1 up to ``slow_at``, and decreases linearly to 0 or ``SLOWEST`` at ``stop_at``.
    A motion that decreases the condition number keeps its speed: the arm can always leave. In
    between the share is continuous, so that a motion along a singularity is smooth. The condition
    number is the largest one until the arm can be at rest.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._arm, self._options = arm, arm.singularity
        self._data = mujoco.MjData(arm.model)
        self._site = arm.model.site(TOOL).id
        self._dofs = np.argsort(arm.order)[: len(arm.joint_names)]
        self.condition = 1.0
        """Largest condition number until the arm could be at rest, at the last ``share``."""

    def share(
        self, velocities: Vector, positions: Vector, jacobian: Vector, braking: Vector
    ) -> float:
        """
        Return the share of their speed that joint velocities (k,) may keep.

        ``positions`` (n,): of ``state_names``; ``jacobian`` (6, k): the tool's, there;
        ``braking`` (k,): displacements of the commanded joints until they can be at rest.
        """
        options, fastest = self._options, float(np.abs(velocities).max())
        if options.action == 'pass' or fastest == 0.0:
            return 1.0
        posture = positions[self._arm.order]
        self.condition = here = condition_number(jacobian)
        after = self._condition_after(posture, velocities * (AHEAD / fastest))
        if after <= here:
            return 1.0
        ahead = (self._condition_after(posture, share * braking) for share in PARTS)
        self.condition = max(here, *ahead)
        if self.condition <= options.slow_at:
            return 1.0
        towards = min(1.0, (after / here - 1.0) / TOWARDS)
        left = (options.stop_at - self.condition) / (options.stop_at - options.slow_at)
        share = max(left, SLOWEST if options.action == 'slow' else 0.0)
        return 1.0 - towards * (1.0 - share)

    def _condition_after(self, posture: Vector, displacements: Vector) -> float:
        """Return the condition number after displacements (k,) from joints of the model (nv,)."""
        model, data = self._arm.model, self._data
        data.qpos[:] = posture
        data.qpos[self._dofs] += displacements
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        jacobian = np.empty((6, model.nv))
        mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], self._site)
        return condition_number(jacobian[:, self._dofs])
