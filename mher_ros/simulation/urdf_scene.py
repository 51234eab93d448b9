"""Builds a MuJoCo model from the links of a URDF, with their meshes, to show or to simulate it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from mher_ros.robots.description import after, DescriptionError, Joint, Pose, pose_of
from mher_ros.robots.model_file import find_file, ModelFileError, parse_model
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.urdf import numbers_of, origin_of, read_urdf
from mher_ros.simulation.obstacles import add_obstacles
import mujoco
import numpy as np

Numbers = tuple[float, ...]

READABLE = ('.obj', '.stl')  # meshes that MuJoCo reads
COLOUR = (0.7, 0.72, 0.75, 1.0)
LARGEST_COLOUR = 1e6  # some files use 0 to 255
KINDS = {'hinge': mujoco.mjtJoint.mjJNT_HINGE, 'slide': mujoco.mjtJoint.mjJNT_SLIDE}
SMALL_MASS, SMALL_INERTIA = 1e-3, 1e-6
"""Least mass [kg] and moments of inertia [kg m^2] of a link that moves."""
MAX_SHAPES = 1000  # of a robot
MAX_MESH_BYTES = 2**28  # counted each time a file is named; with more, no mesh is used


def scene_of(
    text: str, base: str, folder: Path, obstacles: Sequence[Obstacle] = ()
) -> mujoco.MjModel:
    """
    Compile the links of a URDF whose files are named relative to ``folder``, and obstacles.

    The world is the link ``base``. Shapes that cannot be shown are left out; there is a body for
    each link that moves, with or without a shape.
    """
    robot = parse_model(text)
    if sum(map(len, robot.iter('geometry'))) > MAX_SHAPES:
        raise DescriptionError(f'a robot of at most {MAX_SHAPES} shapes is expected, got more')
    paths = filter(None, (_mesh_path(mesh, folder) for mesh in robot.iter('mesh')))
    is_small = sum(path.stat().st_size for path in paths) <= MAX_MESH_BYTES
    readable = READABLE if is_small else ()
    try:
        try:
            return _shown(UrdfScene(robot, base, folder, readable), obstacles)
        except ValueError:  # a mesh that MuJoCo cannot read
            return _shown(UrdfScene(robot, base, folder, ()), obstacles)
    except DescriptionError:
        raise
    except (KeyError, ValueError) as error:
        raise DescriptionError(f'the links of the URDF cannot be shown: {error}') from None


def _shown(scene: 'UrdfScene', obstacles: Sequence[Obstacle]) -> mujoco.MjModel:
    add_obstacles(scene.spec, obstacles)
    return scene.spec.compile()


def with_found_meshes(text: str, folder: Path) -> str:
    """Return the URDF with the full path of each mesh that is found."""
    robot = parse_model(text)
    for mesh in robot.iter('mesh'):
        path = _mesh_path(mesh, folder)
        if path is not None:
            mesh.set('filename', path.as_uri())
    return ElementTree.tostring(robot, encoding='unicode')


class UrdfScene:
    """An ``MjSpec`` with the links of a URDF."""

    def __init__(
        self,
        robot: Element,
        base: str,
        folder: Path,
        meshes: tuple[str, ...] = READABLE,
        is_solid: bool = False,
    ) -> None:
        """
        Place the link ``base`` at the world; ``meshes``: suffixes of those that are used.

        ``is_solid``: with the collision shapes, which touch each other, and with the masses.
        Otherwise with the visual ones, which do not.
        """
        self._folder, self._readable, self._is_solid = folder, meshes, is_solid
        self._links = {link.get('name', ''): link for link in robot.findall('link')}
        self._colours = dict(filter(None, map(_colour_of, robot.findall('material'))))
        description = read_urdf(robot)
        self._children: dict[str, list[Joint]] = {link: [] for link in description.links}
        for joint in description.joints:
            self._children[joint.parent].append(joint)
        self.spec = mujoco.MjSpec()
        self.spec.compiler.degree = False
        self.spec.visual.headlight.ambient = (0.4, 0.4, 0.4)
        world = self.spec.worldbody
        world.add_light(pos=(0.0, 0.0, 3.0), dir=(0.0, 0.3, -1.0), castshadow=False)
        root_in_base, _ = description.chain(base, description.root)
        if is_solid:  # what is fixed to the world is a body of its own, apart from obstacles
            position, orientation = root_in_base
            world = world.add_body(
                name=f'{description.root}_fixed', pos=position, quat=orientation
            )
            root_in_base = pose_of()
        self._add_link(world, description.root, root_in_base)

    def _add_link(self, body: Any, name: str, pose: Pose) -> None:
        """Add a link to ``body`` at ``pose``, and all links below it."""
        for shape in self._shapes(self._links[name]):
            self._add_geom(body, shape, pose)
        for joint in self._children[name]:
            there = after(pose, joint.origin)
            if joint.kind == 'fixed' and body is self.spec.worldbody:
                self._add_link(body, joint.child, there)  # fixed links belong to the world
                continue
            child = body.add_body(name=joint.child, pos=there[0], quat=there[1])
            if joint.kind in KINDS:
                child.explicitinertial, child.mass = True, 1.0
                child.ipos, child.inertia = np.zeros(3), np.ones(3)
                child.add_joint(name=joint.name, type=KINDS[joint.kind], axis=joint.axis)
            if self._is_solid:
                self._set_masses(child, self._links[joint.child])
            self._add_link(child, joint.child, pose_of())

    def _set_masses(self, body: Any, link: Element) -> None:
        """Set mass and inertia of a link; without any they are small."""
        inertial = link.find('inertial')
        body.explicitinertial, body.ipos = True, np.zeros(3)
        body.mass, body.inertia = SMALL_MASS, np.full(3, SMALL_INERTIA)
        if inertial is None:
            return
        mass, inertia = inertial.find('mass'), inertial.find('inertia')
        if mass is None or inertia is None:
            raise ValueError(f'mass and inertia are expected for {link.get("name")}')
        ixx, iyy, izz, ixy, ixz, iyz = (
            float(inertia.get(key, 0.0)) for key in ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
        )
        tensor = np.array(((ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz)))
        position, orientation = origin_of(inertial)
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, orientation)
        rotation = flat.reshape(3, 3)
        moments, axes = np.linalg.eigh(rotation @ tensor @ rotation.T)
        axes = axes * np.sign(np.linalg.det(axes))
        principal = np.empty(4)
        mujoco.mju_mat2Quat(principal, axes.ravel())
        body.mass = max(float(mass.attrib['value']), SMALL_MASS)
        body.ipos, body.iquat = position, principal
        body.inertia = np.maximum(moments, SMALL_INERTIA)

    def _shapes(self, link: Element) -> Iterable[Element]:
        """Return the visual shapes of a link, or its collision shapes if only these are usable."""
        if self._is_solid:
            return [shape for shape in link.findall('collision') if self._is_readable(shape)]
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

    def _add_geom(self, body: Any, shape: Element, pose: Pose) -> None:
        position, orientation = after(pose, origin_of(shape))
        colour = self._colour(shape.find('material'))
        for solid in shape.iterfind('geometry/*'):
            geom = body.add_geom(pos=position, quat=orientation, rgba=colour, **self._solid(solid))
            geom.contype = geom.conaffinity = int(self._is_solid)

    def _colour(self, material: Element | None) -> Numbers:
        own = _colour_of(material)
        if own is not None:
            return own[1]
        return self._colours.get('' if material is None else material.get('name', ''), COLOUR)

    def _solid(self, solid: Element) -> dict[str, Any]:
        kinds = mujoco.mjtGeom
        if solid.tag == 'box':
            edges = np.array(numbers_of(solid, 'size', ''))
            return {'type': kinds.mjGEOM_BOX, 'size': edges / 2.0}
        if solid.tag == 'sphere':
            return {'type': kinds.mjGEOM_SPHERE, 'size': (float(solid.attrib['radius']), 0.0, 0.0)}
        if solid.tag == 'cylinder':
            size = float(solid.attrib['radius']), float(solid.attrib['length']) / 2.0, 0.0
            return {'type': kinds.mjGEOM_CYLINDER, 'size': size}
        name, path = f'mesh{len(self.spec.meshes)}', _mesh_path(solid, self._folder)
        scale = numbers_of(solid, 'scale', '1 1 1')
        self.spec.add_mesh(name=name, file=str(path), scale=scale)
        return {'type': kinds.mjGEOM_MESH, 'meshname': name}


def _colour_of(material: Element | None) -> tuple[str, Numbers] | None:
    colour = None if material is None else material.find('color')
    if material is None or colour is None:
        return None
    rgba = tuple(map(float, colour.attrib['rgba'].split()))
    if not all(abs(part) <= LARGEST_COLOUR for part in rgba):  # refuses NaN, too
        raise ValueError(f'rgba is of finite numbers, got {colour.attrib["rgba"]!r}')
    return material.get('name', ''), rgba


def _mesh_path(mesh: Element, folder: Path) -> Path | None:
    try:
        return find_file(mesh.get('filename', ''), folder)
    except ModelFileError:
        return None
