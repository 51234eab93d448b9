"""Any arm with a URDF, simulated with its masses, with drives and with contacts."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
from types import MappingProxyType
from typing import Any

from mher_ros.interface import Vector
from mher_ros.robots.description import after, turned
from mher_ros.robots.robot import Robot
from mher_ros.simulation.driven_plant import (
    add_drive,
    add_payload,
    compile_arm,
    DrivenPlant,
    remove,
)
from mher_ros.simulation.urdf_arm import UrdfArm
from mher_ros.simulation.urdf_scene import compile_links, MassError, UrdfScene
import mujoco
import numpy as np
from numpy.typing import ArrayLike

EFFORT = 100.0  # force limit of a joint for which neither URDF nor robot file gives one [N m or N]


class UrdfPlant(DrivenPlant):
    """
    The links of a URDF with their collision shapes, and the obstacles of the robot file.

    Joints that are not commanded keep their initial positions. Links that touch each other at
    home do not collide; links that touch an obstacle there do. The shapes that are shown are the
    visual ones.
    """

    def __init__(
        self,
        robot: Robot,
        payload: float = 0.0,
        displaced: Mapping[str, ArrayLike] = MappingProxyType({}),
        varies: bool = False,
    ) -> None:
        """
        Simulate the URDF of a robot file; MassError if its links have no masses.

        ``payload``: mass at the tool that the drives do not know [kg]. ``displaced``:
        displacements (3,) [m] of links by joint, which the URDF does not have. ``varies``: whether
        the payload may be drawn.
        """
        self._has_payload = varies or payload > 0.0
        self._offset = np.array(robot.tool_offset)
        self._urdf = UrdfArm(robot)
        self._arm = arm = self._urdf.model.displaced(displaced)
        self.frame, self.camera = arm.base_frame, self._urdf.camera
        self.joint_names, self.command_names = self._urdf.joint_names, arm.joint_names
        self._lower, self._upper = arm.lower, arm.upper
        start = self._urdf.home[self._urdf.commanded]
        alone = self._build(dataclasses.replace(robot, scene=()), ())
        self._tool = tool = alone.body(robot.tool_frame).id
        self._begin(alone, arm.joint_names, start, arm.velocity_limits, 0.0, tool)
        self._displace(displaced)
        model = self._build(robot, self._touching())
        self._begin(model, arm.joint_names, start, arm.velocity_limits, payload, tool)
        self._displace(displaced)

    def description(self, name: str) -> str:
        """Return the robot's own URDF, with full paths of its meshes."""
        return self._urdf.description

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities of all joints; those not commanded never move."""
        positions, velocities = self._urdf.home.copy(), np.zeros(len(self.joint_names))
        positions[self._urdf.commanded] = self.data.qpos[self._commanded]
        velocities[self._urdf.commanded] = self.data.qvel[self._commanded]
        return positions, velocities

    def tool_pose(self) -> tuple[Vector, Vector]:
        position, orientation = self._arm.tool_pose(self.joint_state()[0][self._urdf.chain])
        if (
            self._variation is not None and self._variation.moves_links
        ):  # its orientation is the same
            turned = self.data.xmat[self._tool].reshape(3, 3) @ self._offset
            position = self.data.xpos[self._tool] + turned
        return position, orientation

    def _build(self, robot: Robot, apart: Sequence[tuple[str, str]]) -> mujoco.MjModel:
        """Compile the arm; the pairs of bodies in ``apart`` do not collide."""

        def finish(scene: UrdfScene) -> mujoco.MjModel:
            spec = scene.spec
            for body in spec.bodies:
                body.gravcomp = 1.0
            if self._has_payload:
                tool = next(body for body in spec.bodies if body.name == robot.tool_frame)
                add_payload(tool, robot.tool_offset)
            for joint in list(spec.joints):
                if joint.name in self.command_names:
                    self._drive(spec, joint)
                else:
                    self._fix(spec, joint)
            for one, other in apart:
                spec.add_exclude(bodyname1=one, bodyname2=other)
            model = compile_arm(spec, robot.scene)
            moving = np.flatnonzero(model.body_weldid).tolist()
            if not any(scene.masses.get(model.body(body).name) for body in moving):
                raise MassError('no link of the URDF that moves has a mass')
            self.untouched = tuple(sorted(scene.untouched))
            return model

        return compile_links(self._urdf.text, self.frame, self._urdf.folder, finish, is_solid=True)

    def _drive(self, spec: Any, joint: Any) -> None:
        """Add a drive to a commanded joint."""
        index = self.command_names.index(joint.name)
        limits = self._lower[index], self._upper[index]
        if np.isfinite(limits).all():
            joint.range = limits
        effort = float(self._arm.effort_limits[index])
        if not effort > 0.0:
            raise ValueError(f'efforts from 0 on are expected, got {effort:g}')
        add_drive(spec, joint, effort if effort < math.inf else EFFORT)

    def _fix(self, spec: Any, joint: Any) -> None:
        """Fix a joint that is not commanded at home."""
        place, body = self._urdf.home[self.joint_names.index(joint.name)], joint.parent
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            moved = place * joint.axis, turned(joint.axis, 0.0)
        else:
            moved = np.zeros(3), turned(joint.axis, place)
        body.pos, body.quat = after((body.pos, body.quat), moved)
        remove(spec, joint)

    def _touching(self) -> list[tuple[str, str]]:
        """Return pairs of bodies that touch at home."""
        model, contacts = self.model, self.data.contact
        geoms = contacts.geom[contacts.dist <= 0.0]
        pairs = {tuple(sorted(pair)) for pair in model.geom_bodyid[geoms].tolist()}
        return [(model.body(one).name, model.body(other).name) for one, other in sorted(pairs)]
