"""Any arm with a URDF, simulated with its masses, with drives and with contacts."""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.robot import Robot, RobotError
from mher_ros.simulation.driven_plant import (
    add_drive,
    add_payload,
    compile_arm,
    DrivenPlant,
    remove,
)
from mher_ros.simulation.urdf_scene import UrdfScene, with_found_meshes
import mujoco
import numpy as np
from numpy.typing import NDArray

EFFORT = 100.0  # force limit of a joint for which the URDF gives none [N m or N]


class UrdfPlant(DrivenPlant):
    """
    The links of a URDF with their collision shapes, and the obstacles of the robot file.

    Joints that are not commanded keep their initial positions. Links that touch each other at
    home do not collide; links that touch an obstacle there do.
    """

    def __init__(self, robot: Robot, payload: float = 0.0) -> None:
        """``payload``: mass at the tool that the drives do not know [kg]."""
        simulated = robot.simulated()
        path = find_file(simulated.model, simulated.folder)
        self._text, self._folder = read_model(path), path.parent
        self._arm = arm = ArmModel(simulated, self._text)
        if arm.state_names != arm.joint_names:
            raise RobotError(
                f'robot {robot.name}: all joints that move the tool must be commanded to simulate '
                f'forces; got {", ".join(arm.state_names[len(arm.joint_names) :])} besides'
            )
        self.frame = arm.base_frame
        self.joint_names = self.command_names = arm.joint_names
        self._lower, self._upper = arm.lower, arm.upper
        start = np.array([robot.home.get(name, 0.0) for name in arm.joint_names])
        try:
            alone = dataclasses.replace(robot, scene=())
            touching = _touching(self._build(alone, (), payload), start)
            model = self._build(robot, touching, payload)
            self._begin(model, start, arm.velocity_limits, payload)
        except (KeyError, ValueError) as error:  # from the numbers of the URDF, or from MuJoCo
            raise RobotError(
                f'robot {robot.name}: the URDF cannot be simulated with masses: {error}'
            ) from None
        middle = self.tool_pose()[0] / 2.0
        self.camera = {'lookat': middle, 'distance': 2.0, 'azimuth': 135.0, 'elevation': -20.0}

    def description(self, name: str) -> str:
        """Return the robot's own URDF, with full paths of its meshes."""
        return with_found_meshes(self._text, self._folder)

    def joint_state(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.data.qpos.copy(), self.data.qvel.copy()

    def tool_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self._arm.tool_pose(self.data.qpos)

    def _build(
        self, robot: Robot, touching: Sequence[tuple[str, str]], payload: float
    ) -> mujoco.MjModel:
        top = parse_model(self._text)
        spec: Any = UrdfScene(top, self.frame, self._folder, is_solid=True).spec
        efforts = {
            joint.get('name'): _effort(limit.get('effort', '0'))
            for joint in top.findall('joint')
            if (limit := joint.find('limit')) is not None
        }
        limits = dict(
            zip(self.joint_names, zip(self._lower, self._upper, strict=True), strict=True)
        )
        for body in spec.bodies:
            body.gravcomp = 1.0
        if payload:
            tool = next(body for body in spec.bodies if body.name == robot.tool_frame)
            add_payload(tool, robot.tool_offset)
        for joint in list(spec.joints):
            if joint.name not in limits:
                remove(spec, joint)
                continue
            if np.isfinite(limits[joint.name]).all():
                joint.range = limits[joint.name]
            add_drive(spec, joint, efforts.get(joint.name, EFFORT))
        for one, other in touching:
            spec.add_exclude(bodyname1=one, bodyname2=other)
        return compile_arm(spec, robot.scene)


def _effort(text: str) -> float:
    effort = float(text)
    if not 0.0 <= effort < math.inf:
        raise ValueError(f'efforts from 0 on are expected, got {text[:80]}')
    return effort or EFFORT


def _touching(model: mujoco.MjModel, home: NDArray[np.float64]) -> list[tuple[str, str]]:
    """Return pairs of bodies that touch at home."""
    data = mujoco.MjData(model)
    data.qpos[:] = home
    mujoco.mj_forward(model, data)
    geoms = data.contact.geom[data.contact.dist <= 0.0]
    bodies = {tuple(sorted(pair)) for pair in model.geom_bodyid[geoms].tolist()}
    return [(model.body(one).name, model.body(other).name) for one, other in sorted(bodies)]
