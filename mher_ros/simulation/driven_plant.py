"""A simulated arm with masses, forces and contacts, and a drive on each joint."""

from collections.abc import Callable, Sequence
from typing import Any

from mher_ros.robots.scene import Obstacle
from mher_ros.simulation.contacts import ContactLog, Contacts
from mher_ros.simulation.drives import Drives, POSITION_GAIN
from mher_ros.simulation.model_variation import ModelVariation, moment, PAYLOAD, set_payload
from mher_ros.simulation.obstacle_bodies import add_slots, ObstacleBodies
from mher_ros.simulation.obstacles import add_obstacles, BODY
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.simulation.plant_draw import PlantDraw
from mher_ros.simulation.urdf_writer import link_name
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

PERIOD = 0.01  # time between two joint states, as real arms publish them [s]
TIMESTEP = 0.002
# Assumed rotor inertia [kg m^2], which no maker specifies, and friction [N m s/rad], which is 1 to
# 5 in Fetch's URDF.
ARMATURE, DAMPING = 0.1, 1.0
# Force limit below which a drive has less of both, in proportion [N m or N]: it is a smaller one.
# The weakest drive of Fetch and Sawyer has 7.4 N m. The servo of an SO-101 has 0.028 kg m^2 and
# 0.6 N m s/rad at 2.9 N m (TheRobotStudio's MJCF); here it gets 0.042 and 0.42.
WEAKEST = 7.0
VELOCITY_GAIN = 360.0  # acceleration per velocity error, for the initial inertia [1/s]
LIGHT = 1e-6  # mass of that body before it is set [kg]
CRUISE = 0.97  # share of the velocity limit: other joints disturb the velocity


class DrivenPlant(JointDrivenPlant):
    """
    An arm whose model has exactly the commanded joints, each with a drive.

    A drive is a cascade: a position loop sets a velocity, and a velocity loop turns it into a
    force within the joint's limit. It also carries the weight of the arm.
    """

    period = PERIOD

    def _begin(
        self,
        model: mujoco.MjModel,
        joints: Sequence[str],
        start: NDArray[np.float64],
        speeds: NDArray[np.float64],
        payload: float,
        tool: int,
    ) -> None:
        """
        Take the model, which has a body for a ``payload`` unless that is 0 [kg].

        ``joints``: names in the model of the commanded joints (k,); ``start``: their initial
        positions (k,); ``speeds``: their velocity limits (k,); ``tool``: body of the tool.
        """
        self.model, self.data = model, mujoco.MjData(model)
        self._start = start
        self._commanded = [int(model.joint(name).qposadr[0]) for name in joints]
        self._dofs = [int(model.joint(name).dofadr[0]) for name in joints]
        self._actuators = [int(model.actuator(name).id) for name in joints]
        self._obstacles = ObstacleBodies(model, self.data)
        self._contacts = ContactLog(model, self.data, self._name_of)
        self.after_step: list[Callable[[], None]] = [self._contacts.look]
        """Called after each step of MuJoCo."""
        self._drives = Drives(CRUISE * speeds, TIMESTEP)
        self._tune_drives()
        if payload:  # the drives do not know it
            set_payload(model, payload)
            mujoco.mj_setConst(model, self.data)
        jointed = [int(model.joint(name).bodyid[0]) for name in joints]
        self._movable = jointed if tool in jointed else [*jointed, tool]
        self.movable_links = len(self._movable)
        self._variation: ModelVariation | None = None
        self.reset()

    def vary(self, draw: PlantDraw) -> None:
        super().vary(draw)
        if self._variation is None:
            self._variation = ModelVariation(
                self.model, self._dofs, self._actuators, self._movable
            )
        self._variation.apply(draw)

    def reset(self, seed: int | None = None, start: NDArray[np.float64] | None = None) -> None:
        """Put the arm at rest in its initial state, which is not random."""
        place = self._checked_start(start, self._start)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self._commanded] = self._target = place
        self._drives.reset()
        self.data.ctrl[self._actuators] = place
        self._obstacles.restore()
        self._contacts.clear()
        mujoco.mj_forward(self.model, self.data)

    def contacts(self) -> Contacts:
        return self._contacts.contacts

    def forget_contacts(self) -> None:
        """Start to count contacts again."""
        self._contacts.clear()

    def _move(self, drive: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> None:
        for _ in range(round(self.period / self.model.opt.timestep)):
            positions = self.data.qpos[self._commanded]
            # This set-point balances the drive's damping at the desired velocity.
            self.data.ctrl[self._actuators] = positions + drive(positions) / POSITION_GAIN
            mujoco.mj_step(self.model, self.data)
            for look in self.after_step:
                look()
        # A step does not update the poses of bodies.
        mujoco.mj_kinematics(self.model, self.data)

    def _tune_drives(self) -> None:
        model, data = self.model, self.data
        data.qpos[self._commanded] = self._start
        mujoco.mj_forward(model, data)
        inertia = np.empty((model.nv, model.nv))
        for column, unit in zip(inertia, np.eye(model.nv), strict=True):
            mujoco.mj_mulM(model, data, column, unit)
        gain, damping = np.empty(model.nu), np.empty(model.nu)
        gain[self._actuators] = VELOCITY_GAIN * np.diag(inertia)[self._commanded]
        damping[self._actuators] = model.dof_damping[self._commanded]
        model.actuator_gainprm[:, 0] = POSITION_GAIN * gain
        model.actuator_biasprm[:, 1] = -POSITION_GAIN * gain
        model.actuator_biasprm[:, 2] = damping - gain

    def _name_of(self, geom: int) -> str:
        """Return the name of a geom's link or obstacle."""
        body = self.model.geom_bodyid[geom]
        if self.model.body(body).name == BODY:
            return str(self.model.geom(geom).name)
        return self._obstacles.name_of(geom) or link_name(self.model, body, self.frame)


def compile_arm(spec: Any, obstacles: Sequence[Obstacle]) -> mujoco.MjModel:
    """Compile an ``MjSpec`` with drives, and obstacles in its world."""
    add_obstacles(spec, obstacles)
    add_slots(spec)
    spec.option.timestep = TIMESTEP
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    # Not in the spec: there it depends on MuJoCo's version whether they are one number or three.
    efforts = model.jnt_actfrcrange[:, 1]
    model.dof_damping[:], model.jnt_stiffness[:] = DAMPING * _size(efforts), 0.0
    return model


def add_drive(spec: Any, joint: Any, effort: float) -> None:
    """Add a drive with a force limit [N m or N] to a joint of an ``MjSpec``."""
    joint.armature = ARMATURE * float(_size(effort))
    joint.actgravcomp = True
    joint.actfrclimited, joint.actfrcrange = True, (-effort, effort)
    drive = spec.add_actuator(name=joint.name, target=joint.name)
    drive.trntype = mujoco.mjtTrn.mjTRN_JOINT
    drive.biastype = mujoco.mjtBias.mjBIAS_AFFINE


def _size(effort: ArrayLike) -> NDArray[np.float64]:
    """Return the assumed size of drives with a force limit [N m or N]: 1 for usual ones."""
    return np.minimum(1.0, np.asarray(effort) / WEAKEST)


def add_payload(body: Any, position: Sequence[float]) -> None:
    """Add the body of a payload, without mass yet, at a point of a body of an ``MjSpec`` [m]."""
    added = body.add_body(name=PAYLOAD, pos=position)
    added.explicitinertial, added.mass = True, LIGHT
    added.ipos, added.inertia = np.zeros(3), np.full(3, moment(LIGHT))


def remove(spec: Any, element: Any) -> None:
    """Remove an element from an ``MjSpec``, in any version of MuJoCo."""
    if hasattr(spec, 'delete'):
        spec.delete(element)
    elif hasattr(element, 'delete'):  # mujoco 3.3
        element.delete()
    else:
        spec.detach_body(element)
