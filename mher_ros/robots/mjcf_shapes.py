"""
Reads the collision geoms of MJCF files.

As in ``mjcf.py``, MuJoCo's compiler only receives elements whose cost is bounded by the size of
the text: here also geoms, but no meshes. Their files are read as those of a URDF.
"""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from mher_ros.errors import MherError
from mher_ros.robots.description import DescriptionError, Pose
from mher_ros.robots.mesh_file import mesh_vertices, MeshBudget, MeshError
from mher_ros.robots.mjcf import keep_elements, KEPT, link_of, PLACE
from mher_ros.robots.model_file import find_file
from mher_ros.robots.solids import (
    box_solid,
    capsule_solid,
    cylinder_solid,
    ellipsoid_solid,
    hull_of,
    LinkShape,
    plane_solid,
    Solid,
)
from mher_ros.robots.urdf import LARGEST
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MESH = ('name', 'class', 'file', 'scale', 'refpos', 'refquat', 'vertex')
GEOM = ('name', 'class', 'type', 'size', 'fromto', 'contype', 'conaffinity', 'mesh', *PLACE)
SHAPES = {
    **KEPT,
    'compiler': (*KEPT['compiler'], 'assetdir', 'meshdir'),
    'asset': (),
    'mesh': MESH,
    'geom': GEOM,
    'contact': (),
    'exclude': ('body1', 'body2'),
}
"""Elements, and their attributes, that determine the collision shapes of links."""


def mjcf_shapes(
    mujoco_element: Element, folder: Path
) -> tuple[list[LinkShape], set[frozenset[str]]]:
    """
    Return the collision shapes of bodies, and pairs of bodies that may touch (``exclude``).

    A geom with ``contype`` and ``conaffinity`` 0 is only seen. Files are relative to ``folder``.
    """
    top = Element('mujoco')
    SubElement(top, 'compiler', boundmass='1', boundinertia='1')
    keep_elements(mujoco_element, top, folder, [], SHAPES)
    folders = [
        folder / name
        for compiler in top.iter('compiler')
        if (name := compiler.get('meshdir', compiler.get('assetdir')))
    ]
    excluded = {
        frozenset((one.get('body1', ''), one.get('body2', ''))) for one in top.iter('exclude')
    }
    try:
        meshes = _Meshes(_spec(top), folders[-1] if folders else folder)
        for child in list(top):
            if child.tag in ('asset', 'contact'):
                top.remove(child)
        spec = _spec(top)
        # A copy: the type that MuJoCo returns changes with the geom.
        geoms = [(mujoco.mjtGeom(int(geom.type)), geom.meshname) for geom in spec.geoms]
        for geom, (kind, mesh) in zip(spec.geoms, geoms, strict=True):
            if mesh or kind not in PRIMITIVES:
                geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, ''
                geom.size = (1.0, 0.0, 0.0)
        model = spec.compile()
    except ValueError as error:
        raise DescriptionError(f'MuJoCo cannot read the model: {error}') from None
    shapes: list[LinkShape] = []
    touched: set[str] = set()
    seen: dict[str, None] = {}
    for index, (kind, mesh) in enumerate(geoms):
        link = link_of(model, int(model.geom_bodyid[index]))
        if not (model.geom_contype[index] or model.geom_conaffinity[index]):
            seen[link] = None
            continue
        touched.add(link)
        pose: Pose = (model.geom_pos[index].copy(), model.geom_quat[index].copy())
        try:
            solid = meshes.hull(mesh) if mesh else _primitive(kind, model.geom_size[index])
            shapes.append(LinkShape(link, solid.at(pose)))
        except (MherError, OSError) as error:
            shapes.append(LinkShape(link, None, trouble=str(error)))
    shapes += [
        LinkShape(link, None, trouble='no collision shape') for link in seen if link not in touched
    ]
    return shapes, excluded


PRIMITIVES = {
    mujoco.mjtGeom.mjGEOM_PLANE: lambda size: plane_solid(),
    mujoco.mjtGeom.mjGEOM_SPHERE: lambda size: Solid(np.zeros((1, 3)), float(size[0])),
    mujoco.mjtGeom.mjGEOM_CAPSULE: lambda size: capsule_solid(float(size[0]), 2.0 * size[1]),
    mujoco.mjtGeom.mjGEOM_ELLIPSOID: ellipsoid_solid,
    mujoco.mjtGeom.mjGEOM_CYLINDER: lambda size: cylinder_solid(size[0], 2.0 * size[1]),
    mujoco.mjtGeom.mjGEOM_BOX: lambda size: box_solid(2.0 * size),
}
"""Solid by the kind of a geom, of its size (3,) [m]."""


def _spec(top: Element) -> Any:
    return mujoco.MjSpec.from_string(ElementTree.tostring(top, encoding='unicode'))


def _primitive(kind: mujoco.mjtGeom, size: Vector) -> Solid:
    if kind not in PRIMITIVES:
        raise MeshError(f'a primitive or a mesh is expected, got {kind.name}')
    if not (np.abs(size) <= LARGEST).all():
        raise DescriptionError(f'sizes up to {LARGEST:g} m are expected, got {size}')
    return PRIMITIVES[kind](size)


class _Meshes:
    """The hulls of the meshes of an ``MjSpec``."""

    def __init__(self, spec: Any, folder: Path) -> None:
        # An element is freed with its ``MjSpec``.
        self._spec, self._folder, self._budget = spec, folder, MeshBudget()
        self._meshes = {mesh.name or Path(mesh.file).stem: mesh for mesh in spec.meshes}
        self._hulls: dict[str, Solid] = {}

    def hull(self, name: str) -> Solid:
        if name not in self._hulls:
            if name not in self._meshes:
                raise MeshError(f'the mesh {name[:80]!r} is not an asset')
            self._hulls[name] = hull_of(self._vertices(self._meshes[name]))
        return self._hulls[name]

    def _vertices(self, mesh: Any) -> Vector:
        if mesh.file:
            path = find_file(mesh.file, self._folder)
            self._budget.take(path, mesh.name)
            vertices = mesh_vertices(path)
        else:
            vertices = np.array(mesh.uservert, np.float64)
            if not vertices.size or vertices.size % 3 or not np.isfinite(vertices).all():
                raise MeshError(f'the mesh {mesh.name[:80]!r} has no file and no vertices')
            vertices = vertices.reshape(-1, 3)
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, mesh.refquat)
        moved = (vertices - mesh.refpos) @ turn.reshape(3, 3) * mesh.scale
        if not (np.abs(moved) <= LARGEST).all():
            raise MeshError(f'a mesh of at most {LARGEST:g} m is expected for {mesh.name[:80]!r}')
        return np.asarray(moved)
