"""
MJCF files as descriptions of arms: bodies and sites are links.

MuJoCo's compiler cannot be interrupted, and a few words of MJCF can ask it for any time and memory
(``replicate count``, ``size nkey``, height fields, textures, meshes). It is therefore given
nothing but bodies, frames, joints and sites, with the attributes that say where they are: what
these cost is bounded by the size of the text. All else does not matter to where a tool is.
"""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.control.description import (
    after,
    Description,
    DescriptionError,
    Joint,
    Pose,
    pose_of,
    turned,
)
from mher_ros.control.model_file import find_file
from mher_ros.control.model_xml import parse_model, read_model
import mujoco
import numpy as np

__all__ = ['read_mjcf']

WORLD = 'world'
KINDS = {
    mujoco.mjtJoint.mjJNT_FREE: 'free',
    mujoco.mjtJoint.mjJNT_BALL: 'ball',
    mujoco.mjtJoint.mjJNT_HINGE: 'hinge',
    mujoco.mjtJoint.mjJNT_SLIDE: 'slide',
}


PLACE = ('pos', 'quat', 'axisangle', 'xyaxes', 'zaxis', 'euler')
BODY = ('name', 'childclass', *PLACE)
JOINT = ('name', 'class', 'type', 'pos', 'axis', 'ref', 'limited', 'range')
KEPT = {
    'compiler': ('angle', 'autolimits', 'coordinate', 'eulerseq'),
    'default': ('class',),
    'worldbody': (),
    'body': BODY,
    'frame': BODY,
    'joint': JOINT,
    'freejoint': ('name',),
    'site': ('name', 'class', 'type', 'size', 'fromto', *PLACE),
}
"""Elements that say where the links are, with the attributes that do."""
MULTIPLIERS = ('attach', 'composite', 'flexcomp', 'replicate')
"""Elements that stand for bodies that are not written out."""
COUNTS = ('count', 'ncol', 'nkey', 'nrow')
MOST_COUNTED = 10_000
MOST_KEPT = 2000
"""Elements of those above."""
MOST_INCLUDED = 10
"""Files that one file may include."""


def read_mjcf(mujoco_element: Element, folder: Path | None) -> Description:
    """Read the top element, ``mujoco``; files that it includes are relative to ``folder``."""
    top = Element('mujoco')
    SubElement(top, 'compiler', boundmass='1', boundinertia='1')
    _check_counts(mujoco_element)
    _keep_places(mujoco_element, top, folder, [])
    kept = sum(1 for _ in top.iter())
    if kept > MOST_KEPT:
        raise DescriptionError(
            f'at most {MOST_KEPT} bodies, joints and sites are expected, got {kept}'
        )
    try:
        model = mujoco.MjModel.from_xml_string(ElementTree.tostring(top, encoding='unicode'))
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot read the model: {error}') from None
    joints = [joint for body in range(1, model.nbody) for joint in _joints_of(model, body)]
    links = {joint.child for joint in joints}
    for site in range(model.nsite):
        name = model.site(site).name
        if name and name not in links:
            pose = model.site_pos[site], model.site_quat[site]
            joints.append(_fixed(_link(model, int(model.site_bodyid[site])), name, pose))
    return Description(WORLD, joints)


def _keep_places(element: Element, kept: Element, folder: Path | None, files: list[Path]) -> None:
    """Add to ``kept`` what ``element`` holds of the elements that say where the links are."""
    for child in element:
        if child.tag in MULTIPLIERS:
            raise DescriptionError(f'MJCF with bodies written out is expected, got <{child.tag}>')
        if child.tag == 'include':
            _keep_places(_included(child, folder, files), kept, folder, files)
        elif child.tag in KEPT:
            attributes = {key: child.attrib[key] for key in KEPT[child.tag] if key in child.attrib}
            _keep_places(child, SubElement(kept, child.tag, attributes), folder, files)


def _check_counts(top: Element) -> None:
    """Refuse a model that nothing could simulate, though what it asks for is not read here."""
    for element in top.iter():
        for key in COUNTS:
            text = element.get(key, '0')
            try:
                is_fit = float(text) <= MOST_COUNTED
            except ValueError:
                is_fit = False
            if not is_fit:
                raise DescriptionError(
                    f'<{element.tag[:80]}> takes at most {MOST_COUNTED} for {key}, '
                    f'got {text[:80]!r}'
                )


def _included(element: Element, folder: Path | None, files: list[Path]) -> Element:
    name = element.get('file', '')
    if folder is None:
        raise DescriptionError(f'a model of one text is expected, it includes {name[:80]!r}')
    path = find_file(name, folder)
    # MuJoCo, too, takes each file once.
    if path in files or len(files) == MOST_INCLUDED:
        raise DescriptionError(
            f'at most {MOST_INCLUDED} different files are included, got {name!r} once more'
        )
    files.append(path)
    return parse_model(read_model(path))


def _joints_of(model: mujoco.MjModel, body: int) -> list[Joint]:
    r"""
    Return the body's joints one after the other, and what is left to its own frame.

    A joint with the anchor :math:`p` and the reference :math:`q_0` moves the body by
    :math:`T(p)\,J(q - q_0)\,T(-p)`, where :math:`J(q - q_0) = J(-q_0)\,J(q)`.
    """
    parent = _link(model, int(model.body_parentid[body]))
    pose: Pose = (model.body_pos[body], model.body_quat[body])
    joints: list[Joint] = []
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for index in range(first, first + count):
        kind, axis = KINDS[mujoco.mjtJoint(model.jnt_type[index])], model.jnt_axis[index]
        name, anchor = model.joint(index).name, model.jnt_pos[index]
        back = -model.qpos0[model.jnt_qposadr[index]]
        reference = (back * axis, turned(axis, 0.0)) if kind == 'slide' else pose_of()
        if kind == 'hinge':
            reference = np.zeros(3), turned(axis, back)
        limited = bool(model.jnt_limited[index])
        child = f'{_link(model, body)} after {name}'
        joints.append(
            Joint(
                name=name,
                kind=kind,
                parent=parent,
                child=child,
                origin=after(after(pose, pose_of(anchor)), reference),
                axis=axis.copy(),
                lower=float(model.jnt_range[index, 0]) if limited else -math.inf,
                upper=float(model.jnt_range[index, 1]) if limited else math.inf,
            )
        )
        parent, pose = child, pose_of(-anchor)
    return [*joints, _fixed(parent, _link(model, body), pose)]


def _fixed(parent: str, child: str, pose: Pose) -> Joint:
    origin = pose[0].copy(), pose[1].copy()
    return Joint(f'{child} fixed', 'fixed', parent, child, origin, np.array((1.0, 0.0, 0.0)))


def _link(model: mujoco.MjModel, body: int) -> str:
    return WORLD if body == 0 else model.body(body).name or f'body{body}'
