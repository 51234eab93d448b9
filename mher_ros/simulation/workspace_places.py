"""The centre and the corners of a workspace, and how an arm reaches them."""

import math
from typing import NamedTuple

from mher_ros.control.reachability import corners_of, IkResult, Reachability
from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel, condition_number, TOOL
from mher_ros.robots.workspace import Workspace
import mujoco
import numpy as np


class Place(NamedTuple):
    """A point of the workspace, and how the arm reaches it from home."""

    name: str
    position: Vector  # (3,) [m]
    ik: IkResult
    joint: str  # the joint nearest to a limit
    margin: float  # its distance from the limit [rad or m]
    condition: float  # condition number of the Jacobian; with rotation from six joints on


class WorkspacePlaces:
    """Postures of an arm in its workspace, regardless of collisions."""

    def __init__(self, arm: ArmModel) -> None:
        self.arm = arm
        self.reachability = Reachability(arm, avoids_collisions=False)
        self._data, self._site = mujoco.MjData(arm.model), arm.model.site(TOOL).id

    def places(
        self, workspace: Workspace, home: Vector, all_or_none: bool = False
    ) -> tuple[Place, ...]:
        """Return centre and corners; with ``all_or_none`` nothing if one is not reached."""
        _, orientation = self.arm.tool_pose(home)
        places = []
        points = [(workspace.low + workspace.high) / 2.0, *corners_of(workspace)]
        for number, point in enumerate(points):
            result = self.reachability.solve(point, home, orientation)
            if all_or_none and not result.reached:
                return ()
            joint, margin = self.margin(result.positions)
            condition = self.condition(result.positions)
            name = f'corner {number}' if number else 'centre'
            places.append(Place(name, point, result, joint, margin, condition))
        return tuple(places)

    def margin(self, positions: Vector) -> tuple[str, float]:
        """Return the commanded joint nearest to a limit, and its distance from it."""
        arm = self.arm
        joints = positions[: len(arm.joint_names)]
        margins = np.minimum(joints - arm.lower, arm.upper - joints)
        index = int(margins.argmin())
        return (arm.joint_names[index] if margins[index] < math.inf else ''), margins[index]

    def links(self, positions: Vector) -> Vector:
        """Return the positions of base, joints and tool (n + 2, 3) [m]."""
        data = self._data
        data.qpos[:] = positions[self.arm.order]
        mujoco.mj_kinematics(self.arm.model, data)
        return np.vstack((np.zeros(3), data.xpos[1:], data.site_xpos[self._site]))

    def is_singular(self, condition: float) -> bool:
        """Return whether the arm is slow with this condition number, near a singularity."""
        return condition > self.arm.singularity.slow_at

    def condition(self, positions: Vector) -> float:
        """Return the condition number of the tool's Jacobian by the commanded joints."""
        arm, data = self.arm, self._data
        self.links(positions)
        mujoco.mj_comPos(arm.model, data)
        jacobian = np.zeros((6, arm.model.nv))
        mujoco.mj_jacSite(arm.model, data, jacobian[:3], jacobian[3:], self._site)
        return condition_number(jacobian[:, np.argsort(arm.order)[: len(arm.joint_names)]])

    def height(self, positions: Vector) -> float:
        """Return the z component of the tool's z axis in the base frame, from -1 to 1."""
        self.links(positions)
        return float(self._data.site_xmat[self._site].reshape(3, 3)[2, 2])
