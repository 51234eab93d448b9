"""
Reads MJCF files as descriptions of arms: bodies and sites are links.

MuJoCo's compiler cannot be interrupted, and a short MJCF text can make it use any time and memory
(``replicate count``, ``size nkey``, height fields, textures, meshes). So it receives only bodies,
frames, joints and sites with the attributes of their poses: their cost is bounded by the size of
the text. The kinematics of a tool depend on nothing else; ``mjcf_shapes.py`` reads geoms.
"""

from collections.abc import Callable, Mapping
import math
from pathlib import Path
from types import MappingProxyType
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.robots.description import (
    after,
    Description,
    DescriptionError,
    Joint,
    Pose,
    pose_of,
    turned,
)
from mher_ros.robots.model_file import find_file, parse_model, read_model
import mujoco
import numpy as np

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
"""Elements, and their attributes, that determine the poses of links."""
MULTIPLIERS = ('attach', 'composite', 'flexcomp', 'replicate')
"""Elements that generate bodies."""
COUNTS = ('count', 'ncol', 'nkey', 'nrow')
MAX_COUNTED = 10_000
MAX_KEPT = 2000  # elements of those above
MAX_INCLUDED = 10  # files that one file may include


def read_mjcf(mujoco_element: Element, folder: Path | None) -> Description:
    """Read the top element, ``mujoco``; files that it includes are relative to ``folder``."""
    top = Element('mujoco')
    SubElement(top, 'compiler', boundmass='1', boundinertia='1')
    _check_counts(mujoco_element)
    keep_elements(mujoco_element, top, folder, [])
    try:
        model = mujoco.MjModel.from_xml_string(ElementTree.tostring(top, encoding='unicode'))
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot read the model: {error}') from None
    joints: list[Joint] = []
    for body in range(1, model.nbody):
        parent = link_of(model, int(model.body_parentid[body]))
        joints += body_joints(model, body, parent, link_of(model, body))
    links = {joint.child for joint in joints}
    for site in range(model.nsite):
        name = model.site(site).name
        if name and name not in links:
            pose = model.site_pos[site], model.site_quat[site]
            joints.append(_fixed(link_of(model, int(model.site_bodyid[site])), name, pose))
    return Description(WORLD, joints)


def keep_elements(
    element: Element,
    kept: Element,
    folder: Path | None,
    files: list[Path],
    which: Mapping[str, tuple[str, ...]] = MappingProxyType(KEPT),
) -> None:
    """
    Copy the elements and attributes ``which`` below ``element`` to ``kept``.

    Files that are included are relative to ``folder``, and are added to ``files``.
    """
    _copy(element, kept, folder, files, which)
    count = sum(1 for _ in kept.iter())
    if count > MAX_KEPT:
        raise DescriptionError(
            f'at most {MAX_KEPT} bodies, joints, sites and geoms are expected, got {count}'
        )


def _copy(
    element: Element,
    kept: Element,
    folder: Path | None,
    files: list[Path],
    which: Mapping[str, tuple[str, ...]],
) -> None:
    for child in element:
        if child.tag in MULTIPLIERS:
            raise DescriptionError(f'MJCF without generated bodies is expected, got <{child.tag}>')
        if child.tag == 'include':
            _copy(_included(child, folder, files), kept, folder, files, which)
        elif child.tag in which:
            attributes = {
                key: child.attrib[key] for key in which[child.tag] if key in child.attrib
            }
            _copy(child, SubElement(kept, child.tag, attributes), folder, files, which)


def _check_counts(top: Element) -> None:
    """Refuse a model that cannot be simulated, although the counts do not matter here."""
    for element in top.iter():
        for key in COUNTS:
            text = element.get(key, '0')
            try:
                is_fit = float(text) <= MAX_COUNTED
            except ValueError:
                is_fit = False
            if not is_fit:
                raise DescriptionError(
                    f'<{element.tag[:80]}> takes at most {MAX_COUNTED} for {key}, '
                    f'got {text[:80]!r}'
                )


def _included(element: Element, folder: Path | None, files: list[Path]) -> Element:
    name = element.get('file', '')
    if folder is None:
        raise DescriptionError(f'a model of one text is expected, it includes {name[:80]!r}')
    path = find_file(name, folder)
    # MuJoCo includes each file once, too.
    if path in files or len(files) == MAX_INCLUDED:
        raise DescriptionError(
            f'at most {MAX_INCLUDED} different files are included, got {name!r} once more'
        )
    files.append(path)
    return parse_model(read_model(path))


def body_joints(
    model: mujoco.MjModel, body: int, parent: str, link: str, name_of: Callable[[str], str] = str
) -> list[Joint]:
    r"""
    Return the joints from ``parent`` to the link of a body, each with the link after it.

    A joint with the anchor :math:`p` and the reference :math:`q_0` moves the body by
    :math:`T(p)\,J(q - q_0)\,T(-p)`, where :math:`J(q - q_0) = J(-q_0)\,J(q)`. A ``Joint`` is
    :math:`T\,J(q)`, so :math:`T(-p)` goes to what follows: the next joint, or a fixed one.
    ``name_of`` turns the name of a joint in the model into the one to return.
    """
    pose: Pose = (model.body_pos[body], model.body_quat[body])
    joints: list[Joint] = []
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    for index in range(first, first + count):
        kind, axis = KINDS[mujoco.mjtJoint(model.jnt_type[index])], model.jnt_axis[index]
        name, anchor = name_of(model.joint(index).name), model.jnt_pos[index]
        back = -model.qpos0[model.jnt_qposadr[index]]
        reference = (back * axis, turned(axis, 0.0)) if kind == 'slide' else pose_of()
        if kind == 'hinge':
            reference = np.zeros(3), turned(axis, back)
        is_last = index == first + count - 1 and not anchor.any()
        child = link if is_last else f'{link}_after_{name}'
        limited = bool(model.jnt_limited[index])
        lower, upper = model.jnt_range[index].tolist() if limited else (-math.inf, math.inf)
        origin = after(after(pose, pose_of(anchor)), reference)
        joints.append(Joint(name, kind, parent, child, origin, axis.copy(), lower, upper))
        parent, pose = child, pose_of(-anchor)
    return joints if parent == link else [*joints, _fixed(parent, link, pose)]


def _fixed(parent: str, child: str, pose: Pose) -> Joint:
    origin = pose[0].copy(), pose[1].copy()
    return Joint(f'{child}_fixed', 'fixed', parent, child, origin, np.array((1.0, 0.0, 0.0)))


def link_of(model: mujoco.MjModel, body: int) -> str:
    return WORLD if body == 0 else model.body(body).name or f'body{body}'
