"""The kinematics of an arm, from its joints to its tool."""

from collections.abc import Mapping
import copy
import dataclasses
import functools
import math
from pathlib import Path
import threading
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.robots.arm_parts import ArmParts, read_parts
from mher_ros.robots.collision_model import CollisionModel, Part
from mher_ros.robots.description import (
    after,
    Description,
    DescriptionError,
    Joint,
    Pose,
    pose_of,
    some,
)
from mher_ros.robots.mjcf import read_mjcf
from mher_ros.robots.model_file import find_file, parse_model, read_model
from mher_ros.robots.obstacle_slots import ObstacleSlots
from mher_ros.robots.robot import Robot, ROBOT_DESCRIPTION
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.urdf import read_urdf
import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

TOOL = 'tool'  # site of the model at the tool
ACCELERATIONS = {'hinge': 4.0, 'slide': 1.0}
"""Acceleration limits of joints for which the robot file gives none [rad/s^2, m/s^2]."""
UNITS = {'hinge': 'rad', 'slide': 'm'}
LENGTH = 0.3  # makes angular velocities comparable with linear ones [m]
SMALL = 1e-6  # keeps the rotation that a motion entails finite near a singularity [m^2]
POSE_JOINTS = 6  # joints from which on an arm reaches poses; with fewer it reaches positions
MAX_MOVING = 64  # joints between base and tool


class ArmModel:
    """
    The chain of joints from the base of an arm to its tool.

    The state of a joint of the chain is needed even if it is not commanded, for example a torso.
    """

    def __init__(self, robot: Robot, text: str | None = None) -> None:
        """``text``: the model as URDF or MJCF; default: the file that ``robot`` names."""
        description = read_description(robot, text)
        text, folder = _read_text(robot) if text is None else (text, robot.folder)
        self._robot, self._source = robot, (text, folder, description)
        self.home = robot.home
        """Initial positions in simulation, by joint [rad or m]; empty: not known."""
        self.singularity = robot.singularity
        self.reaction_time = robot.reaction_time
        """Largest delay with which the arm carries out a command [s]."""
        self.base_frame = robot.base_frame or description.root
        """Frame of the tool's positions, velocities and orientations."""
        self.joint_names = robot.joints
        """Commanded joints (k)."""
        start, chain = description.chain(self.base_frame, robot.tool_frame)
        joints = _checked([joint for joint in chain if joint.kind != 'fixed'], robot)
        self._base_link = next(iter(joints.values())).parent
        others = tuple(name for name in joints if name not in robot.joints)
        self.state_names = (*robot.joints, *others)
        """Joints whose state is needed (n), the commanded ones first."""
        self.units = tuple(UNITS[joints[name].kind] for name in self.state_names)
        """Units of their positions (n)."""
        commanded = [joints[name] for name in robot.joints]
        self.lower = np.array([joint.lower for joint in commanded])
        self.upper = np.array([joint.upper for joint in commanded])
        """Limits of the commanded joints (k,) [rad or m]; infinite: no limit."""
        self.velocity_limits = np.array([joint.velocity for joint in commanded])
        """(k,) [rad/s or m/s]"""
        self.acceleration_limits = np.array([joint.acceleration for joint in commanded])
        """(k,) [rad/s^2 or m/s^2]"""
        self.effort_limits = np.array([joint.effort for joint in commanded])
        """(k,) [N m or N], of simulations of a URDF; infinite: not given."""
        self.model = _build_model(start, chain, joints, pose_of(robot.tool_offset))
        """The world is the base frame; a site ``TOOL`` is the tool."""
        # Joints of the model are in the order of the chain.
        self.order = np.array([self.state_names.index(name) for name in joints])
        """Index in ``state_names`` of each joint of ``model`` (n,)."""
        self._is_in_order = bool((self.order == np.arange(len(self.order))).all())
        self._kinematics = ToolKinematics(self.model, site=TOOL)

    def displaced(
        self, links: Mapping[str, ArrayLike], tool: ArrayLike = (0.0, 0.0, 0.0)
    ) -> 'ArmModel':
        """
        Return an arm that differs from its description.

        ``links``: displacement (3,) [m] of the link behind each joint that is named, in the frame
        of this link; ``tool``: of the tool, in its frame.
        """
        other = copy.copy(self)
        vars(other).pop('collision', None)  # computed anew, from the other model
        other.model = copy.copy(self.model)
        displace(other.model, {other.model.joint(name).id: at for name, at in links.items()})
        site = other.model.site(TOOL).id
        other.model.site_pos[site] += _rotated(tool, other.model.site_quat[site])
        other._kinematics = ToolKinematics(other.model, site=TOOL)
        return other

    @functools.cached_property
    def collision(self) -> CollisionModel | None:
        """Solids and pairs of them that must not touch; None: it is off, or there are none."""
        found = self._parts
        if not found.parts:
            return None
        home = np.array([self._robot.home.get(name, 0.0) for name in self.state_names])
        collision = CollisionModel(
            found.parts,
            self.model,
            self._robot,
            home[self.order],
            self._base_link,
            found.excluded,
        )
        return collision if len(collision.pairs) else None

    def obstacle_slots(self) -> ObstacleSlots | None:
        """Return places for obstacles at run time; None: no part is kept away from them."""
        if not any(part.body for part in self.parts):
            return None
        return ObstacleSlots(self.parts, self.model, self._robot)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Parts of the arm, and obstacles of the robot file; empty if avoidance is off."""
        return self._parts.parts

    @property
    def scene(self) -> tuple[Obstacle, ...]:
        """Obstacles of the robot file; empty if avoidance is off."""
        return self._robot.scene if self._robot.collision.enabled else ()

    @property
    def clearance(self) -> float:
        """Least distance between two parts, unless they are nearer at home [m]."""
        return self._robot.collision.clearance

    @property
    def unprotected(self) -> str:
        """Links with shapes that cannot be used for collisions, and why; empty: there are none."""
        found, reasons = self._parts, dict[str, list[str]]()
        if self._robot.collision.enabled and not any(part.body for part in found.parts):
            reasons['no link that moves has a collision shape that can be used'] = ['all links']
        for link, reason in found.missing:
            reasons.setdefault(reason, []).append(link)
        return '; '.join(f'{some(links)} ({reason})' for reason, links in reasons.items())

    @functools.cached_property
    def _parts(self) -> ArmParts:
        if not self._robot.collision.enabled:
            return ArmParts()
        text, folder, description = self._source
        moving = [self.state_names[index] for index in self.order]
        return read_parts(text, folder, description, self._robot, self.base_frame, moving)

    def tool(
        self, positions: NDArray[np.float64], velocities: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return position (3,) [m] and velocity (3,) [m/s] for ``state_names`` (n,)."""
        if not self._is_in_order:
            positions, velocities = positions[self.order], velocities[self.order]
        return self._kinematics.position_and_velocity(positions, velocities)

    def tool_position(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return position (3,) [m] for ``state_names`` (n,)."""
        return self._kinematics.position(positions if self._is_in_order else positions[self.order])

    def tool_positions(self, postures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return positions (m, 3) [m] for postures (m, n) of ``state_names``."""
        return self._kinematics.positions(
            postures if self._is_in_order else postures[:, self.order]
        )

    def tool_pose(self, positions: ArrayLike) -> Pose:
        """Return position (3,) [m] and orientation (4,) (w, x, y, z) for ``state_names`` (n,)."""
        return self._kinematics.pose(np.asarray(positions, np.float64)[self.order])


def displace(model: mujoco.MjModel, links: Mapping[int, ArrayLike]) -> None:
    """Displace the bodies of joints, by number, by (3,) [m] in their own frames."""
    for joint, displacement in links.items():
        body = model.jnt_bodyid[joint]
        model.body_pos[body] += _rotated(displacement, model.body_quat[body])


def read_description(
    robot: Robot, text: str | None = None, folder: Path | None = None
) -> Description:
    """Read the model of a robot from ``text``, or from the file that it names."""
    if text is None:
        text, folder = _read_text(robot)
    top = parse_model(text)
    if top.tag == 'robot':
        return read_urdf(top)
    if top.tag == 'mujoco':
        return read_mjcf(top, folder)
    raise DescriptionError(f'<robot> (URDF) or <mujoco> (MJCF) is expected, got <{top.tag[:80]}>')


def _read_text(robot: Robot) -> tuple[str, Path]:
    """Return the text of the file that a robot names, and its folder."""
    if robot.model == ROBOT_DESCRIPTION:
        raise DescriptionError(
            f'robot {robot.name} takes its model from {ROBOT_DESCRIPTION}; none was received'
        )
    path = find_file(robot.model, robot.folder)
    return read_model(path), path.parent


def _checked(chain: list[Joint], robot: Robot) -> dict[str, Joint]:
    """Return the movable joints of a chain, with the limits of the robot file."""
    if len(chain) > MAX_MOVING:
        raise DescriptionError(
            f'at most {MAX_MOVING} movable joints are expected between base and tool, '
            f'got {len(chain)}'
        )
    joints = {joint.name: joint for joint in chain}
    if len(joints) < len(chain):
        names = some([joint.name for joint in chain])
        raise DescriptionError(f'joints with different names are expected, got {names}')
    for name in robot.joints:
        if name not in joints:
            raise DescriptionError(
                f'no joint {name!r} moves {robot.tool_frame}; these do: {some(list(joints))}'
            )
    for joint in joints.values():
        if joint.kind not in ('hinge', 'slide') or joint.mimics:
            kind = f'one that mimics {joint.mimics}' if joint.mimics else f'a {joint.kind} one'
            raise DescriptionError(
                f'revolute, continuous, prismatic and fixed joints are expected between base and '
                f'tool; {joint.name} is {kind}'
            )
    return {
        name: _limited(joint, robot) if name in robot.joints else joint
        for name, joint in joints.items()
    }


def _limited(joint: Joint, robot: Robot) -> Joint:
    given = robot.joint_limits.get(joint.name)
    if given is not None:
        changes = {key: value for key, value in vars(given).items() if value is not None}
        joint = dataclasses.replace(joint, **changes)
    if not joint.lower < joint.upper:
        raise DescriptionError(
            f'joint {joint.name}: a lower limit below the upper one is expected, got '
            f'{joint.lower} and {joint.upper}; joint_limits of the robot can correct it'
        )
    if not 0.0 < joint.velocity < math.inf:
        raise DescriptionError(
            f'joint {joint.name}: the model has no velocity limit; give one in '
            f'joint_limits.{joint.name}.velocity of the robot'
        )
    if math.isnan(joint.acceleration):
        joint = dataclasses.replace(joint, acceleration=ACCELERATIONS[joint.kind])
    return joint


def _build_model(
    start: Pose, chain: list[Joint], joints: dict[str, Joint], offset: Pose
) -> mujoco.MjModel:
    """Compile one body per movable joint, with its limits, and a site at the tool."""
    top = Element('mujoco')
    SubElement(top, 'compiler', angle='radian', autolimits='true')
    body = SubElement(top, 'worldbody')
    pose = start
    for link in chain:
        pose = after(pose, link.origin)
        if link.kind == 'fixed':
            continue
        joint = joints[link.name]
        body = SubElement(body, 'body', _pose_attributes(pose))
        SubElement(body, 'inertial', pos='0 0 0', mass='1', diaginertia='1 1 1')
        element = SubElement(
            body, 'joint', name=joint.name, type=joint.kind, axis=_text(joint.axis)
        )
        if math.isfinite(joint.lower) and math.isfinite(joint.upper):
            element.set('range', _text((joint.lower, joint.upper)))
        pose = pose_of()
    SubElement(body, 'site', {'name': TOOL, **_pose_attributes(after(pose, offset))})
    try:
        return mujoco.MjModel.from_xml_string(ElementTree.tostring(top, encoding='unicode'))
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot build the arm: {error}') from None


def _pose_attributes(pose: Pose) -> dict[str, str]:
    return {'pos': _text(pose[0]), 'quat': _text(pose[1])}


def _text(numbers: ArrayLike) -> str:
    return ' '.join(repr(float(number)) for number in np.asarray(numbers))


def _rotated(vector: ArrayLike, orientation: NDArray[np.float64]) -> NDArray[np.float64]:
    turned = np.empty(3)
    mujoco.mju_rotVecQuat(turned, np.asarray(vector, np.float64), orientation)
    return turned


def condition_number(jacobian: NDArray[np.float64]) -> float:
    """
    Return the condition number of a tool's Jacobian (6, k) by k joints; infinite if singular.

    With fewer than six joints only the position of the tool counts.
    """
    count = jacobian.shape[1]
    weighted = jacobian[:3]
    if count >= POSE_JOINTS:
        weighted = np.concatenate((weighted, LENGTH * jacobian[3:]))
    values = np.linalg.svd(weighted, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 1e-9 else math.inf


def spare_rotation(
    jacobian: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """
    Return what a tool with too few joints can turn without leaving its position.

    ``jacobian`` (6, k). The result is the rotation that a motion of the tool entails (3, 3)
    [rad/m], and rows (3, k) of the rotation beyond that, orthogonal to those of the position.
    """
    moved, turned = jacobian[:3], jacobian[3:]
    square = moved @ moved.T + SMALL * np.eye(3)
    entailed = np.asarray(np.linalg.solve(square, moved @ turned.T).T, np.float64)
    return entailed, turned - entailed @ moved


def axes_of(orientation: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x and y axis (6,) of an orientation (4,) (w, x, y, z)."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, orientation)
    return matrix.reshape(3, 3).T[:2].ravel()


class ToolKinematics:
    """
    Forward kinematics of one site or body of an arm.

    It does not change a simulation of the same model, and threads may share it.
    """

    def __init__(self, model: mujoco.MjModel, *, site: str | None = None, body: str | None = None):
        if (site is None) == (body is None):
            raise ValueError('the tool is either a site or a body')
        self._model = model
        self._fill_jacobian = mujoco.mj_jacBody if site is None else mujoco.mj_jacSite
        self._own = _ThreadData(model, site, body)

    def position(self, joint_positions: ArrayLike) -> NDArray[np.float64]:
        """Return the tool's position in the model's world frame [m] for all ``nq`` joints."""
        own = self._own
        own.qpos[:] = _vector('joint positions', joint_positions, self._model.nq)
        mujoco.mj_kinematics(self._model, own.data)
        return own.position.copy()

    def positions(self, postures: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the tool's positions (m, 3) [m] for postures (m, nq); faster than one by one."""
        own, found = self._own, np.empty((len(postures), 3))
        for posture, position in zip(postures, found, strict=True):
            own.qpos[:] = posture
            mujoco.mj_kinematics(self._model, own.data)
            position[:] = own.position
        return found

    def pose(self, joint_positions: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the tool's position [m] and orientation (w, x, y, z) in the world frame."""
        position, orientation = self.position(joint_positions), np.empty(4)
        mujoco.mju_mat2Quat(orientation, self._own.rotation)
        return position, orientation

    def position_and_velocity(
        self, joint_positions: ArrayLike, joint_velocities: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the tool's position [m] and linear velocity [m/s] in the world frame."""
        position, own = self.position(joint_positions), self._own
        mujoco.mj_comPos(self._model, own.data)
        self._fill_jacobian(self._model, own.data, own.jacobian, None, own.id)
        velocities = _vector('joint velocities', joint_velocities, self._model.nv)
        return position, own.jacobian @ velocities


class _ThreadData(threading.local):
    """What forward kinematics writes to; each thread has its own."""

    def __init__(self, model: mujoco.MjModel, site: str | None, body: str | None) -> None:
        self.data = mujoco.MjData(model)
        self.jacobian = np.zeros((3, model.nv))
        tool = self.data.body(body) if site is None else self.data.site(site)
        self.qpos, self.id, self.position, self.rotation = (
            self.data.qpos,
            tool.id,
            tool.xpos,
            tool.xmat,
        )


def _vector(name: str, values: ArrayLike, size: int) -> NDArray[np.float64]:
    vector = np.asarray(values, np.float64)
    if vector.shape != (size,):  # numpy would broadcast a single number
        raise ValueError(f'expected {size} {name}, got an array of shape {vector.shape}')
    return vector
