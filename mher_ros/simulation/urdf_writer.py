"""Writes a MuJoCo model as a URDF, for RViz and other tools."""

from collections.abc import Sequence
import math
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.interface import Vector
from mher_ros.robots.description import Joint, Pose
from mher_ros.robots.mjcf import body_joints
from mher_ros.simulation.arms import JointLimits, known_limits
from mher_ros.simulation.shapes import FIXED, robot_bodies, Shape, visible_shapes
from mher_ros.tasks.mujoco_task import joint_name
import mujoco
import numpy as np

TYPES = {'hinge': 'revolute', 'slide': 'prismatic', 'fixed': 'fixed'}
UNLIMITED = 1000.0  # stands for no limit of effort [N m], velocity [rad/s] or position [m]


def urdf_of(
    model: mujoco.MjModel, name: str, joint_names: Sequence[str], root: str = 'world'
) -> str:
    """Return the URDF of the robot with these joints, and of what is fixed around it."""
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
                _add_shape(element, shape, colours[shape.rgba])
        if body != 0:
            parent = links[int(model.body_parentid[body])]
            for joint in body_joints(model, body, parent, link, joint_name):
                if joint.child != link:
                    SubElement(robot, 'link', name=joint.child)
                _add_joint(robot, joint)
    _check_unique(robot)
    ElementTree.indent(robot)
    return f'<?xml version="1.0"?>\n{ElementTree.tostring(robot, encoding="unicode")}\n'


def link_name(model: mujoco.MjModel, body: int, root: str = 'world') -> str:
    """Return the name of a body's link; ``root``: that of the world."""
    name = model.body(body).name.removeprefix('robot0:').removesuffix(FIXED)
    return root if body == 0 else name or f'body{body}'


def link_frames(
    model: mujoco.MjModel, joint_names: Sequence[str], root: str = 'world'
) -> dict[int, str]:
    """Return the names of the links by body, without that of the world, ``root``."""
    bodies = robot_bodies(model, joint_names)
    names = {body: link_name(model, body, root) for body in bodies}
    return {body: name for body, name in names.items() if name != root}


def _add_joint(robot: Element, joint: Joint) -> None:
    if joint.kind not in TYPES:
        raise ValueError(f'joint {joint.name}: a hinge or a slide is expected, got {joint.kind}')
    is_limited = math.isfinite(joint.lower)
    is_continuous = joint.kind == 'hinge' and not is_limited
    kind = 'continuous' if is_continuous else TYPES[joint.kind]
    element = SubElement(robot, 'joint', name=joint.name, type=kind)
    _add_origin(element, joint.origin)
    SubElement(element, 'parent', link=joint.parent)
    SubElement(element, 'child', link=joint.child)
    if joint.kind == 'fixed':
        return
    SubElement(element, 'axis', xyz=_text(joint.axis))
    given = known_limits(joint.name) or JointLimits(UNLIMITED, UNLIMITED)
    effort, velocity = _text([given.effort]), _text([given.velocity])
    limit = SubElement(element, 'limit', effort=effort, velocity=velocity)
    if not is_continuous:
        lower, upper = (joint.lower, joint.upper) if is_limited else (-UNLIMITED, UNLIMITED)
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


def _add_shape(link: Element, shape: Shape, colour: str) -> None:
    """Add a shape that is both seen and touched."""
    for kind in ('visual', 'collision'):
        element = SubElement(link, kind, name=shape.name)
        _add_origin(element, (np.array(shape.position), np.array(shape.orientation)))
        geometry = SubElement(element, 'geometry')
        size = shape.touched if kind == 'collision' and shape.touched else shape.size
        width, _, height = size
        if shape.mesh is not None:
            SubElement(geometry, 'mesh', filename=shape.mesh.as_uri())
        elif shape.kind == 'box':
            SubElement(geometry, 'box', size=_text(size))
        elif shape.kind == 'sphere':
            SubElement(geometry, 'sphere', radius=_text([width / 2]))
        else:
            SubElement(geometry, 'cylinder', radius=_text([width / 2]), length=_text([height]))
        if kind == 'visual':
            SubElement(element, 'material', name=colour)


def _add_origin(element: Element, pose: Pose) -> None:
    position, orientation = pose
    SubElement(element, 'origin', xyz=_text(position), rpy=_text(_roll_pitch_yaw(orientation)))


def _roll_pitch_yaw(orientation: Vector) -> tuple[float, float, float]:
    """Return angles about the fixed axes x, y, z [rad]; exact for every pitch."""
    flat = np.empty(9)
    mujoco.mju_quat2Mat(flat, orientation)
    matrix = flat.reshape(3, 3)
    yaw = np.arctan2(matrix[1, 0], matrix[0, 0])
    pitch = np.arctan2(-matrix[2, 0], np.hypot(matrix[0, 0], matrix[1, 0]))
    # Computed after the yaw is undone: at a pitch of 90 degrees only the sum or difference of roll
    # and yaw is determined, and the yaw is arbitrary.
    sine, cosine = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(
        sine * matrix[0, 2] - cosine * matrix[1, 2], cosine * matrix[1, 1] - sine * matrix[0, 1]
    )
    return float(roll), float(pitch), float(yaw)


def _text(numbers: Sequence[float] | Vector) -> str:
    return ' '.join(repr(float(number) + 0.0) for number in numbers)


def _check_unique(robot: Element) -> None:
    for kind in ('link', 'joint'):
        names = [element.attrib['name'] for element in robot.findall(kind)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f'names of {kind}s are unique, got {", ".join(twice)} twice')
