"""A URDF as a model to look at: its links where its joints have them, with their meshes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.control.description import after, DescriptionError, Joint, Pose, pose_of
from mher_ros.control.model_file import find_file, ModelFileError
from mher_ros.control.model_xml import parse_model
from mher_ros.control.urdf_file import numbers_of, read_urdf
import mujoco
import numpy as np
from numpy.typing import ArrayLike

__all__ = ['scene_of', 'with_found_meshes']

READABLE = ('.obj', '.stl')
"""Meshes that MuJoCo reads."""
COLOUR = '0.7 0.72 0.75 1'
MOST_SHAPES = 1000
"""Of a robot."""
MOST_MESH_BYTES = 2**28
"""Of its mesh files, each counted as often as it is named; without meshes if there are more."""


def scene_of(text: str, base: str, folder: Path) -> mujoco.MjModel:
    """
    Compile the links of a URDF whose files are named relative to ``folder``.

    The world is the link ``base``. What cannot be shown is left out: there is a body for each link
    that moves, with or without a shape.
    """
    robot = parse_model(text)
    if sum(map(len, robot.iter('geometry'))) > MOST_SHAPES:
        raise DescriptionError(f'a robot of at most {MOST_SHAPES} shapes is expected, got more')
    paths = filter(None, (_mesh_path(mesh, folder) for mesh in robot.iter('mesh')))
    is_small = sum(path.stat().st_size for path in paths) <= MOST_MESH_BYTES
    readable = READABLE if is_small else ()
    try:
        try:
            return mujoco.MjModel.from_xml_string(_Scene(robot, base, folder, readable).text())
        except ValueError:  # a mesh that MuJoCo does not take
            return mujoco.MjModel.from_xml_string(_Scene(robot, base, folder, ()).text())
    except DescriptionError:
        raise
    except (KeyError, ValueError) as error:
        raise DescriptionError(f'the links of the URDF cannot be shown: {error}') from None


def with_found_meshes(text: str, folder: Path) -> str:
    """Return the URDF with the full address of each mesh that is found."""
    robot = parse_model(text)
    for mesh in robot.iter('mesh'):
        path = _mesh_path(mesh, folder)
        if path is not None:
            mesh.set('filename', path.as_uri())
    return ElementTree.tostring(robot, encoding='unicode')


class _Scene:
    """The MJCF that is made of a URDF."""

    def __init__(self, robot: Element, base: str, folder: Path, meshes: tuple[str, ...]) -> None:
        self._folder, self._readable = folder, meshes
        self._links = {link.get('name', ''): link for link in robot.findall('link')}
        self._colours = dict(filter(None, map(_colour_of, robot.findall('material'))))
        description = read_urdf(robot)
        self._children: dict[str, list[Joint]] = {link: [] for link in description.links}
        for joint in description.joints:
            self._children[joint.parent].append(joint)
        self._top = Element('mujoco')
        SubElement(self._top, 'compiler', angle='radian', autolimits='true')
        self._assets = SubElement(self._top, 'asset')
        world = SubElement(self._top, 'worldbody')
        SubElement(world, 'light', pos='0 0 3', dir='0 0.3 -1', castshadow='false')
        SubElement(SubElement(self._top, 'visual'), 'headlight', ambient='0.4 0.4 0.4')
        root_in_base, _ = description.chain(base, description.root)
        self._add_link(world, description.root, root_in_base)

    def text(self) -> str:
        return ElementTree.tostring(self._top, encoding='unicode')

    def _add_link(self, body: Element, name: str, pose: Pose) -> None:
        """Add what is fixed to ``body`` at ``pose``, and all that follows."""
        for shape in self._shapes(self._links[name]):
            self._add_geom(body, shape, pose)
        for joint in self._children[name]:
            there = after(pose, joint.origin)
            if joint.kind == 'fixed' and body.tag == 'worldbody':
                self._add_link(body, joint.child, there)  # what stands still is the world's
                continue
            child = SubElement(body, 'body', {'name': joint.child, **_attributes(there)})
            if joint.kind in ('hinge', 'slide'):
                SubElement(child, 'inertial', pos='0 0 0', mass='1', diaginertia='1 1 1')
                SubElement(
                    child, 'joint', name=joint.name, type=joint.kind, axis=_text(joint.axis)
                )
            self._add_link(child, joint.child, pose_of())

    def _shapes(self, link: Element) -> Iterable[Element]:
        """Return what is to be seen of a link, or what it collides with where that can be read."""
        for kind in ('visual', 'collision'):
            shapes = link.findall(kind)
            if shapes and all(self._is_readable(shape) for shape in shapes):
                return shapes
        return ()

    def _is_readable(self, shape: Element) -> bool:
        mesh = shape.find('geometry/mesh')
        if mesh is None:
            return True
        path = _mesh_path(mesh, self._folder)
        return path is not None and path.suffix.lower() in self._readable

    def _add_geom(self, body: Element, shape: Element, pose: Pose) -> None:
        origin = shape.find('origin')
        own = pose_of(numbers_of(origin, 'xyz', '0 0 0'), numbers_of(origin, 'rpy', '0 0 0'))
        attributes = {
            **_attributes(after(pose, own)),
            'rgba': self._colour(shape.find('material')),
            'contype': '0',
            'conaffinity': '0',
        }
        geometry = shape.find('geometry')
        for solid in geometry if geometry is not None else ():
            SubElement(body, 'geom', {**attributes, **self._solid(solid)})

    def _colour(self, material: Element | None) -> str:
        told = _colour_of(material)
        if told is not None:
            return told[1]
        return self._colours.get('' if material is None else material.get('name', ''), COLOUR)

    def _solid(self, solid: Element) -> dict[str, str]:
        if solid.tag == 'box':
            return {'type': 'box', 'size': _text(np.array(numbers_of(solid, 'size', '')) / 2.0)}
        if solid.tag == 'sphere':
            return {'type': 'sphere', 'size': solid.attrib['radius']}
        if solid.tag == 'cylinder':
            size = float(solid.attrib['radius']), float(solid.attrib['length']) / 2.0
            return {'type': 'cylinder', 'size': _text(size)}
        name = f'mesh{len(self._assets)}'
        path = _mesh_path(solid, self._folder)
        scale = _text(numbers_of(solid, 'scale', '1 1 1'))
        SubElement(self._assets, 'mesh', name=name, file=str(path), scale=scale)
        return {'type': 'mesh', 'mesh': name}


def _colour_of(material: Element | None) -> tuple[str, str] | None:
    colour = None if material is None else material.find('color')
    if material is None or colour is None:
        return None
    return material.get('name', ''), colour.attrib['rgba']


def _mesh_path(mesh: Element, folder: Path) -> Path | None:
    try:
        return find_file(mesh.get('filename', ''), folder)
    except ModelFileError:
        return None


def _attributes(pose: Pose) -> dict[str, str]:
    return {'pos': _text(pose[0]), 'quat': _text(pose[1])}


def _text(numbers: ArrayLike) -> str:
    return ' '.join(repr(float(number)) for number in np.asarray(numbers))
