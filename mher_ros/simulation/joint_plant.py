"""
The arm of a task, commanded by joint positions like a real one.

Its model is the task's, without the constraint that moves the tool there: each joint has a drive
with the limits of the arm's maker. The drives also carry the weight of the arm.
"""

from collections.abc import Mapping, Sequence
import copy
from types import MappingProxyType
from typing import Any

from mher_ros.interface import Vector
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.robots.description import Pose
from mher_ros.robots.scene import Obstacle
from mher_ros.simulation.arms import Arm, ARMS
from mher_ros.simulation.driven_plant import (
    add_drive,
    add_payload,
    compile_arm,
    DrivenPlant,
    remove,
)
from mher_ros.simulation.obstacles import touch_obstacles
from mher_ros.simulation.urdf_writer import urdf_of
from mher_ros.tasks import make
from mher_ros.tasks.mujoco_task import joint_name, MujocoTask, package_folder
from mher_ros.tasks.sawyer_reach import SCENE
import mujoco
import numpy as np
from numpy.typing import ArrayLike

TOOLS = {'fetch_reach': {'site': 'robot0:grip'}, 'sawyer_reach': {'body': 'hand'}}


class JointPlant(DrivenPlant):
    """Drives on the seven joints of a task's arm; other joints keep their initial positions."""

    frame = 'world'

    def __init__(
        self,
        task: str,
        obstacles: Sequence[Obstacle] = (),
        payload: float = 0.0,
        displaced: Mapping[str, ArrayLike] = MappingProxyType({}),
        varies: bool = False,
    ) -> None:
        """
        Simulate the arm of a task.

        ``obstacles``: in the world frame. ``payload``: mass at the tool that the drives do not
        know [kg]. ``displaced``: displacements (3,) [m] of links by joint, which the description
        does not have. ``varies``: whether the payload may be drawn.
        """
        if task not in ARMS:
            raise OptionError(
                f'tasks whose arm takes joint commands are {", ".join(ARMS)}; got {task!r}'
            )
        arm = ARMS[task]
        rest = make(task)
        assert isinstance(rest, MujocoTask)
        rest.reset(seed=0)
        self.joint_names, self.camera = rest.joint_names, rest.camera
        self.command_names = tuple(arm.joints)
        self._arm = [self.joint_names.index(name) for name in self.command_names]
        self._fixed_positions, _ = rest.joint_state()
        limits = arm.joints.values()
        self._lower = np.array([limit.lower for limit in limits])
        self._upper = np.array([limit.upper for limit in limits])
        speeds = np.array([limit.velocity for limit in limits])
        model = _build_model(task, arm, rest, obstacles, varies or payload > 0.0)
        joints = [model.joint(joint).name for joint in range(model.njnt)]
        [(kind, name)] = TOOLS[task].items()
        tool = int(model.site(name).bodyid[0]) if kind == 'site' else model.body(name).id
        self._begin(model, joints, self._fixed_positions[self._arm], speeds, payload, tool)
        self._described = copy.copy(self.model)
        self._displace(displaced)
        self._kinematics = ToolKinematics(model, **TOOLS[task])

    def description(self, name: str) -> str:
        return urdf_of(self._described, name, self.joint_names, self.frame)

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities of all joints; those of other parts never move."""
        positions, velocities = self._fixed_positions.copy(), np.zeros_like(self._fixed_positions)
        positions[self._arm] = self.data.qpos
        velocities[self._arm] = self.data.qvel
        return positions, velocities

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._kinematics.pose(self.data.qpos)


def _build_model(
    task: str, arm: Arm, rest: MujocoTask, obstacles: Sequence[Obstacle], has_payload: bool
) -> mujoco.MjModel:
    """Compile the task's scene with drives on the arm's joints, and the others fixed."""
    spec = _load_scene(task)
    for element in (*spec.equalities, *spec.actuators):
        remove(spec, element)
    for body in list(spec.bodies):
        if body.mocap:
            remove(spec, body)
            continue
        body.gravcomp = 1.0
        if body.name in arm.masses:
            body.inertia *= arm.masses[body.name] / body.mass
            body.mass = arm.masses[body.name]
    for joint in list(spec.joints):
        limits = arm.joints.get(joint_name(joint.name))
        if limits is None:
            body = joint.parent
            body.pos, body.quat = _pose_in_parent(rest, body.name)
            remove(spec, joint)
            continue
        if np.isfinite(limits.lower):
            joint.range = (limits.lower, limits.upper)
        add_drive(spec, joint, limits.effort)
    if has_payload:
        [(kind, name)] = TOOLS[task].items()
        if kind == 'site':
            tool = next(site for site in spec.sites if site.name == name)
            add_payload(tool.parent, tool.pos)
        else:
            add_payload(next(body for body in spec.bodies if body.name == name), (0.0, 0.0, 0.0))
    touch_obstacles(spec)
    return compile_arm(spec, obstacles)


def _load_scene(task: str) -> Any:
    if task == 'fetch_reach':
        path = package_folder('gymnasium_robotics') / 'envs' / 'assets' / 'fetch' / 'reach.xml'
        return mujoco.MjSpec.from_file(str(path))
    return mujoco.MjSpec.from_string(SCENE.format(assets=package_folder('metaworld') / 'assets'))


def _pose_in_parent(rest: MujocoTask, body: str) -> Pose:
    data, child = rest.data, rest.model.body(body).id
    parent = rest.model.body_parentid[child]
    back, position, orientation = np.empty(4), np.empty(3), np.empty(4)
    mujoco.mju_negQuat(back, data.xquat[parent])
    mujoco.mju_rotVecQuat(position, data.xpos[child] - data.xpos[parent], back)
    mujoco.mju_mulQuat(orientation, back, data.xquat[child])
    return position, orientation
