"""Reads URDF files as descriptions of arms; meshes and inertias are ignored."""

import math
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from mher_ros.robots.description import Description, DescriptionError, Joint, Pose, pose_of, some
import numpy as np

KINDS = {'revolute': 'hinge', 'continuous': 'hinge', 'prismatic': 'slide'}
LARGEST = 1e6  # length [m], angle [rad] or factor
XACRO = '{http://www.ros.org/wiki/xacro}'


def read_urdf(robot: Element) -> Description:
    """Read the top element, ``robot``."""
    if any(element.tag.startswith(XACRO) for element in robot.iter()):
        raise DescriptionError('a URDF is expected, got a xacro file')
    joints = [_read_joint(element) for element in robot.findall('joint')]
    names = [element.get('name', '') for element in robot.findall('link')]
    links = set(names)
    for joint in joints:
        for link in (joint.parent, joint.child):
            if link not in links:
                raise DescriptionError(f'joint {joint.name} connects {link!r}, which is no link')
    children = {joint.child for joint in joints}
    roots = [link for link in names if link not in children]
    if len(roots) != 1:
        raise DescriptionError(f'a URDF has one root link; got {some(roots)}')
    return Description(roots[0], joints)


def numbers_of(element: Element | None, key: str, default: str) -> list[float]:
    """Return the three finite numbers of an attribute; ValueError if it has others."""
    text = default if element is None else element.get(key, default)
    numbers = [float(number) for number in text.split()]
    if len(numbers) != 3 or not all(abs(number) <= LARGEST for number in numbers):
        raise ValueError(
            f'three finite numbers up to {LARGEST:g} are expected for {key}, got {text[:80]!r}'
        )
    return numbers


def origin_of(element: Element) -> Pose:
    """Return the pose of an element with an ``origin``."""
    origin = element.find('origin')
    return pose_of(numbers_of(origin, 'xyz', '0 0 0'), numbers_of(origin, 'rpy', '0 0 0'))


def _read_joint(element: Element) -> Joint:
    name, kind = element.get('name', ''), element.get('type', '')
    mimic, limit = element.find('mimic'), element.find('limit')
    bounds = {} if limit is None else limit.attrib
    is_bounded = kind in ('revolute', 'prismatic') and bool(bounds)
    try:
        axis = np.array(numbers_of(element.find('axis'), 'xyz', '1 0 0'))
        length = float(np.linalg.norm(axis))
        if kind in KINDS and length == 0.0:
            raise ValueError('an axis with a length is expected, got 0 0 0')
        return Joint(
            name=name,
            kind=KINDS.get(kind, kind),
            parent=_link(element, 'parent'),
            child=_link(element, 'child'),
            origin=origin_of(element),
            axis=axis / (length or 1.0),
            # Both default to 0 in URDF.
            lower=_finite(bounds, 'lower') if is_bounded else -math.inf,
            upper=_finite(bounds, 'upper') if is_bounded else math.inf,
            velocity=float(bounds.get('velocity', 0.0)) or math.inf,
            effort=_effort(bounds),
            mimics='' if mimic is None else mimic.get('joint', ''),
        )
    except ValueError as error:
        raise DescriptionError(f'joint {name!r} of the URDF: {error}') from None


def _finite(bounds: dict[str, str], key: str) -> float:
    text = bounds.get(key, '0')
    if not math.isfinite(float(text)):
        raise ValueError(f'a finite number is expected for {key}, got {text[:80]!r}')
    return float(text)


def _effort(bounds: dict[str, str]) -> float:
    """Return the effort limit; NaN if it is no number: only a simulation needs it."""
    try:
        return float(bounds.get('effort', '0')) or math.inf
    except ValueError:
        return math.nan


def _link(element: Element, role: str) -> str:
    found = element.find(role)
    if found is None or 'link' not in found.attrib:
        text = ElementTree.tostring(element, encoding='unicode').strip()
        raise ValueError(f'a {role} link is expected, got {text[:200]}')
    return found.attrib['link']
