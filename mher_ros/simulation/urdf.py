"""A model as a robot description (URDF), for RViz and everything else that reads one."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.simulation.arms import known_limits
from mher_ros.simulation.shapes import robot_bodies, Shape, visible_shapes
from mher_ros.tasks.mujoco_task import joint_name
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['link_name', 'urdf_of']

Pose = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Position (3,) [m] and orientation (4,) (w, x, y, z)."""

UNTOLD = 1000.0
"""Stands for an effort [N m], a velocity [rad/s] or a way [m] that nothing limits."""


def urdf_of(
    model: mujoco.MjModel, name: str, joint_names: Sequence[str], root: str = 'world'
) -> str:
    """
    Describe the robot whose joints are ``joint_names``, and what stands still around it.

    Links have the names of bodies and stand where these do. Left out is what
    ``mher_ros.simulation.shapes.robot_bodies`` leaves out.
    """
    robot = Element('robot', name=name)
    shapes = visible_shapes(model, joint_names)
    colours = {rgba: f'colour{number}' for number, rgba in enumerate({s.rgba: 0 for s in shapes})}
    for rgba, colour in colours.items():
        SubElement(SubElement(robot, 'material', name=colour), 'color', rgba=_text(rgba))
    links = {body: link_name(model, body, root) for body in robot_bodies(model, joint_names)}
    for body, link in links.items():
        element = SubElement(robot, 'link', name=link)
        _add_inertial(element, model, body)
        for shape in shapes:
            if shape.body == body:
                _add_visual(element, shape, colours[shape.rgba])
        if body != 0:
            _add_joints(robot, model, body, links[int(model.body_parentid[body])], link)
    _check_unique(robot)
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def link_name(model: mujoco.MjModel, body: int, root: str = 'world') -> str:
    """Return the name of the link that stands for a body."""
    return root if body == 0 else model.body(body).name.removeprefix('robot0:') or f'body{body}'


def _add_joints(robot: Element, model: mujoco.MjModel, body: int, parent: str, link: str) -> None:
    r"""
    Join a link to its parent through the body's joints, one after the other.

    A joint with the anchor :math:`p` and the reference :math:`q_0` moves the body by
    :math:`T(p)\,J(q - q_0)\,T(-p)`, where :math:`J(q - q_0) = J(-q_0)\,J(q)`. A joint of a URDF
    is :math:`T\,J(q)`, so :math:`T(-p)` goes to what follows: the next joint, or a fixed one.
    """
    pose: Pose = (model.body_pos[body], model.body_quat[body])
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for joint in range(first, first + count):
        name, anchor = joint_name(model.joint(joint).name), model.jnt_pos[joint]
        pose = _after(pose, (anchor, _turn((0.0, 0.0, 1.0), 0.0)))
        origin = _after(pose, _motion(model, joint, -model.qpos0[model.jnt_qposadr[joint]]))
        last = joint == first + count - 1 and not anchor.any()
        child = link if last else f'{link}_after_{name}'
        if not last:
            SubElement(robot, 'link', name=child)
        element = _add_joint(robot, name, _joint_type(model, joint), parent, child, origin)
        SubElement(element, 'axis', xyz=_text(model.jnt_axis[joint]))
        _add_limit(element, model, joint)
        parent, pose = child, (-anchor, _turn((0.0, 0.0, 1.0), 0.0))
    if parent != link:
        _add_joint(robot, f'{link}_fixed', 'fixed', parent, link, pose)


def _add_joint(
    robot: Element, name: str, kind: str, parent: str, child: str, origin: Pose
) -> Element:
    joint = SubElement(robot, 'joint', name=name, type=kind)
    _add_origin(joint, origin)
    SubElement(joint, 'parent', link=parent)
    SubElement(joint, 'child', link=child)
    return joint


def _joint_type(model: mujoco.MjModel, joint: int) -> str:
    kind = mujoco.mjtJoint(model.jnt_type[joint])
    if kind == mujoco.mjtJoint.mjJNT_SLIDE:
        return 'prismatic'
    if kind == mujoco.mjtJoint.mjJNT_HINGE:
        return 'revolute' if model.jnt_limited[joint] else 'continuous'
    name = model.joint(joint).name
    raise ValueError(f'joint {name} can be described as a hinge or a slide, got {kind.name}')


def _motion(model: mujoco.MjModel, joint: int, way: float) -> Pose:
    """Return how a joint moves what follows by ``way`` [rad or m], seen from its anchor."""
    axis = model.jnt_axis[joint]
    if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE:
        return way * axis, _turn(axis, 0.0)
    return np.zeros(3), _turn(axis, way)


def _add_limit(element: Element, model: mujoco.MjModel, joint: int) -> None:
    told = known_limits(element.attrib['name'])
    limit = SubElement(
        element,
        'limit',
        effort=_text([told.effort if told else UNTOLD]),
        velocity=_text([told.velocity if told else UNTOLD]),
    )
    if element.attrib['type'] != 'continuous':
        limited = model.jnt_limited[joint]
        lower, upper = model.jnt_range[joint] if limited else (-UNTOLD, UNTOLD)
        limit.attrib.update(lower=_text([lower]), upper=_text([upper]))


def _add_inertial(link: Element, model: mujoco.MjModel, body: int) -> None:
    if model.body_mass[body] == 0.0:
        return
    inertial = SubElement(link, 'inertial')
    _add_origin(inertial, (model.body_ipos[body], model.body_iquat[body]))
    SubElement(inertial, 'mass', value=_text([model.body_mass[body]]))
    moments = dict(zip(('ixx', 'iyy', 'izz'), model.body_inertia[body], strict=True))
    keys = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    SubElement(inertial, 'inertia', {key: _text([moments.get(key, 0.0)]) for key in keys})


def _add_visual(link: Element, shape: Shape, colour: str) -> None:
    visual = SubElement(link, 'visual', name=shape.name)
    _add_origin(visual, (np.array(shape.position), np.array(shape.orientation)))
    geometry = SubElement(visual, 'geometry')
    width, _, height = shape.size
    if shape.mesh is not None:
        SubElement(geometry, 'mesh', filename=shape.mesh.as_uri())
    elif shape.kind == 'box':
        SubElement(geometry, 'box', size=_text(shape.size))
    elif shape.kind == 'sphere':
        SubElement(geometry, 'sphere', radius=_text([width / 2]))
    else:
        SubElement(geometry, 'cylinder', radius=_text([width / 2]), length=_text([height]))
    SubElement(visual, 'material', name=colour)


def _add_origin(element: Element, pose: Pose) -> None:
    position, orientation = pose
    SubElement(element, 'origin', xyz=_text(position), rpy=_text(_roll_pitch_yaw(orientation)))


def _roll_pitch_yaw(orientation: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return angles about the fixed axes x, y, z [rad]; exact for every pitch."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, orientation)
    matrix = flat.reshape(3, 3)
    yaw = np.arctan2(matrix[1, 0], matrix[0, 0])
    pitch = np.arctan2(-matrix[2, 0], np.hypot(matrix[0, 0], matrix[1, 0]))
    # Taken after the yaw has been undone, so that it makes up for whatever yaw was chosen where
    # a pitch of 90 degrees leaves only their sum or difference to be seen.
    sine, cosine = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(
        sine * matrix[0, 2] - cosine * matrix[1, 2], cosine * matrix[1, 1] - sine * matrix[0, 1]
    )
    return float(roll), float(pitch), float(yaw)


def _after(first: Pose, second: Pose) -> Pose:
    """Return the pose that ``second`` has where it is given in the frame of ``first``."""
    position, orientation = np.empty(3), np.empty(4)
    mujoco.mju_mulPose(position, orientation, *first, *second)
    return position, orientation


def _turn(axis: Sequence[float] | NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    orientation = np.empty(4)
    mujoco.mju_axisAngle2Quat(orientation, np.asarray(axis, np.float64), angle)
    return orientation


def _text(numbers: Sequence[float] | NDArray[np.float64]) -> str:
    return ' '.join(repr(float(number) + 0.0) for number in numbers)


def _check_unique(robot: Element) -> None:
    for kind in ('link', 'joint'):
        names = [element.attrib['name'] for element in robot.findall(kind)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'names of {kind}s are unique, got {", ".join(twice)} twice')
