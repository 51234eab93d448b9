"""The arm of a task, commanded by joint positions like a real one."""

# Its model is the task's, without the constraint that moves the tool there: each joint has a drive
# with the limits of the arm's maker. The drives also carry the weight of the arm.

from collections.abc import Callable
from typing import Any

from mher_ros.interface import Vector
from mher_ros.options import OptionError
from mher_ros.robots.arm_model import ToolKinematics
from mher_ros.robots.description import Pose
from mher_ros.simulation.arms import Arm, ARMS
from mher_ros.simulation.drives import Drives, POSITION_GAIN
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.tasks import make
from mher_ros.tasks.mujoco_task import joint_name, MujocoTask, package_folder
from mher_ros.tasks.sawyer_reach import SCENE
import mujoco
import numpy as np

TOOLS = {'fetch_reach': {'site': 'robot0:grip'}, 'sawyer_reach': {'body': 'hand'}}
PERIOD = 0.01  # time between two joint states, as real arms publish them [s]
TIMESTEP = 0.002
# Assumed rotor inertia [kg m^2], which no maker specifies, and friction [N m s/rad], which is 1 to
# 5 in Fetch's URDF.
ARMATURE, DAMPING = 0.1, 1.0
VELOCITY_GAIN = 360.0  # acceleration per velocity error, for the initial inertia [1/s]
CRUISE = 0.97  # share of the velocity limit: other joints disturb the velocity


class JointPlant(JointDrivenPlant):
    """Position drives on the seven joints of a task's arm."""

    # A drive is a cascade: a position loop sets a velocity, and a velocity loop turns it into a
    # force within the joint's limit. Other joints keep their initial positions.
    frame = 'world'
    period = PERIOD

    def __init__(self, task: str) -> None:
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
        self._start = self._fixed_positions[self._arm]
        self._commanded = list(range(len(self.command_names)))
        limits = arm.joints.values()
        self._lower = np.array([limit.lower for limit in limits])
        self._upper = np.array([limit.upper for limit in limits])
        speeds = CRUISE * np.array([limit.velocity for limit in limits])
        self._drives = Drives(speeds, TIMESTEP)
        self.model = _build_model(task, arm, rest)
        self.data = mujoco.MjData(self.model)
        self._tune_drives()
        self._kinematics = ToolKinematics(self.model, **TOOLS[task])
        self.reset()

    def reset(self, seed: int | None = None) -> None:
        """Put the arm at rest in the initial state of the task, which is not random."""
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self._start
        self._target = self._start.copy()
        self._drives.reset()
        self.data.ctrl[:] = self._start
        mujoco.mj_forward(self.model, self.data)

    def joint_state(self) -> tuple[Vector, Vector]:
        """Return positions and velocities of all joints; those of other parts never move."""
        positions, velocities = self._fixed_positions.copy(), np.zeros_like(self._fixed_positions)
        positions[self._arm] = self.data.qpos
        velocities[self._arm] = self.data.qvel
        return positions, velocities

    def tool_pose(self) -> tuple[Vector, Vector]:
        return self._kinematics.pose(self.data.qpos)

    def _move(self, drive: Callable[[Vector], Vector]) -> None:
        for _ in range(round(self.period / self.model.opt.timestep)):
            positions = self.data.qpos
            # This set-point balances the drive's damping at the desired velocity.
            self.data.ctrl[:] = positions + drive(positions) / POSITION_GAIN
            mujoco.mj_step(self.model, self.data)
        # A step does not update the poses of bodies.
        mujoco.mj_kinematics(self.model, self.data)

    def _tune_drives(self) -> None:
        model, data = self.model, self.data
        data.qpos[:] = self._start
        mujoco.mj_forward(model, data)
        inertia = np.empty((model.nv, model.nv))
        for column, unit in zip(inertia, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, column, unit)
        gain = VELOCITY_GAIN * np.diag(inertia)
        model.actuator_gainprm[:, 0] = POSITION_GAIN * gain
        model.actuator_biasprm[:, 1] = -POSITION_GAIN * gain
        model.actuator_biasprm[:, 2] = DAMPING - gain


def _build_model(task: str, arm: Arm, rest: MujocoTask) -> mujoco.MjModel:
    """Compile the task's scene with drives on the arm's joints, and the others fixed."""
    spec = _load_scene(task)
    for element in (*spec.equalities, *spec.actuators):
        _remove(spec, element)
    for body in list(spec.bodies):
        if body.mocap:
            _remove(spec, body)
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
            _remove(spec, joint)
            continue
        if np.isfinite(limits.lower):
            joint.range = (limits.lower, limits.upper)
        joint.armature = ARMATURE
        joint.actgravcomp = True
        joint.actfrclimited, joint.actfrcrange = True, (-limits.effort, limits.effort)
        drive = spec.add_actuator(name=joint.name, target=joint.name)
        drive.trntype = mujoco.mjtTrn.mjTRN_JOINT
        drive.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    # Not in the spec: there it depends on MuJoCo's version whether they are one number or three.
    model.dof_damping[:], model.jnt_stiffness[:] = DAMPING, 0.0
    return model


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


def _remove(spec: Any, element: Any) -> None:
    if hasattr(spec, 'delete'):
        spec.delete(element)
    elif hasattr(element, 'delete'):  # mujoco 3.3
        element.delete()
    else:
        spec.detach_body(element)
