"""Builds a MuJoCo model from the links of a URDF, with their meshes, to show or to simulate it."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from mher_ros.errors import MherError
from mher_ros.interface import Vector
from mher_ros.robots.description import after, DescriptionError, Joint, Pose, pose_of
from mher_ros.robots.mesh_file import mesh_vertices, MeshError
from mher_ros.robots.model_file import find_file, ModelFileError, parse_model
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import hull_vertices, with_thickness
from mher_ros.robots.urdf import numbers_of, origin_of, read_urdf
from mher_ros.simulation.obstacle_bodies import add_slots
from mher_ros.simulation.obstacles import add_obstacles, CONTACT
from mher_ros.simulation.shapes import FIXED, SHOWN_GROUPS
import mujoco
import numpy as np

Numbers = tuple[float, ...]

READABLE, COLLADA = ('.obj', '.stl'), '.dae'
"""Meshes that MuJoCo reads, and those of which only the hull is used, for contacts."""
COLOUR = (0.7, 0.72, 0.75, 1.0)
LARGEST_COLOUR = 1e6  # some files use 0 to 255
KINDS = {'hinge': mujoco.mjtJoint.mjJNT_HINGE, 'slide': mujoco.mjtJoint.mjJNT_SLIDE}
SMALL_MASS, SMALL_INERTIA = 1e-3, 1e-6
"""Least mass [kg] and moments of inertia [kg m^2] of a link that moves."""
MOMENTS = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
ROUNDING = 1.05  # largest moment over the sum of the others that is taken for a rounding error
UNIMPORTANT = 1e-3  # moment of inertia that may be larger, as that of a sensor [kg m^2]
LARGEST_MASS = 1e6  # [kg]; and largest moment of inertia [kg m^2]
MAX_SHAPES = 1000  # of a robot
MAX_MESH_BYTES = 2**28  # counted each time a file is named; with more, no mesh is used


class MassError(DescriptionError):
    """The masses of a URDF are missing, or are not those of bodies."""


def scene_of(
    text: str, base: str, folder: Path, obstacles: Sequence[Obstacle] = ()
) -> mujoco.MjModel:
    """
    Compile the links of a URDF as they are shown, and obstacles, also those at run time.

    The arguments are those of ``compile_links``.
    """

    def finish(scene: UrdfScene) -> mujoco.MjModel:
        add_obstacles(scene.spec, obstacles)
        add_slots(scene.spec)
        return scene.spec.compile()

    return compile_links(text, base, folder, finish)


def compile_links(
    text: str,
    base: str,
    folder: Path,
    finish: Callable[['UrdfScene'], mujoco.MjModel],
    is_solid: bool = False,
) -> mujoco.MjModel:
    """
    Return the model that ``finish`` makes of the links of a URDF.

    The files of the URDF are named relative to ``folder``; the world is the link ``base``. Shapes
    that cannot be used are left out; there is a body for each link that moves, with or without a
    shape. ``is_solid``: as for ``UrdfScene``.
    """
    robot = parse_model(text)
    if sum(map(len, robot.iter('geometry'))) > MAX_SHAPES:
        raise DescriptionError(f'a robot of at most {MAX_SHAPES} shapes is expected, got more')
    paths = filter(None, (_mesh_path(mesh, folder) for mesh in robot.iter('mesh')))
    is_small = sum(path.stat().st_size for path in paths) <= MAX_MESH_BYTES
    try:
        try:
            return finish(UrdfScene(robot, base, folder, is_small, is_solid))
        except ValueError:  # a mesh that MuJoCo cannot read
            return finish(UrdfScene(robot, base, folder, False, is_solid))
    except MherError:
        raise
    except (KeyError, ValueError) as error:
        done = 'simulated with masses' if is_solid else 'shown'
        raise DescriptionError(f'the links of the URDF cannot be {done}: {error}') from None


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
        uses_meshes: bool = True,
        is_solid: bool = False,
    ) -> None:
        """
        Place the link ``base`` at the world; ``uses_meshes``: else they are left out.

        ``is_solid``: also with the collision shapes, which are hidden and touch each other, and
        with the masses.
        """
        self._folder, self._uses_meshes, self._is_solid = folder, uses_meshes, is_solid
        self._meshes: dict[tuple[Path, Numbers], str] = {}  # names by file and scale
        self.masses: dict[str, float] = {}
        """Masses of links that have any [kg]; empty unless ``is_solid``."""
        self.untouched: set[str] = set()
        """Links with collision shapes that cannot be used; empty unless ``is_solid``."""
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
                name=f'{description.root}{FIXED}', pos=position, quat=orientation
            )
            root_in_base = pose_of()
            world.explicitinertial, world.mass = True, SMALL_MASS
            world.ipos, world.inertia = np.zeros(3), np.full(3, SMALL_INERTIA)
        self._add_link(world, description.root, root_in_base)

    def _add_link(self, body: Any, name: str, pose: Pose) -> None:
        """Add a link to ``body`` at ``pose``, and all links below it."""
        for shape in self._shown(self._links[name]):
            self._add_geom(body, shape, pose)
        if self._is_solid:
            for shape in self._links[name].findall('collision'):
                try:
                    if not self._is_readable(shape, (*READABLE, COLLADA)):
                        raise MeshError(f'a mesh of {name} cannot be used')
                    self._add_geom(body, shape, pose, is_solid=True)
                except (MeshError, OSError):
                    self.untouched.add(name)
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
        mass = None if inertial is None else inertial.find('mass')
        inertia = None if inertial is None else inertial.find('inertia')
        if inertial is None or mass is None or inertia is None:
            return
        kilograms = float(mass.attrib['value'])
        moments = [float(inertia.get(key, 0.0)) for key in MOMENTS]
        name = link.get('name', '')
        if not 0.0 <= kilograms <= LARGEST_MASS:
            raise ValueError(
                f'a mass from 0 to {LARGEST_MASS:g} kg is expected for {name}, got {kilograms:g}'
            )
        if not all(abs(moment) <= LARGEST_MASS for moment in moments):
            raise ValueError(f'finite moments of inertia are expected for {name}, got {moments}')
        if kilograms:
            self.masses[name] = kilograms
        ixx, iyy, izz, ixy, ixz, iyz = moments
        tensor = np.array(((ixx, ixy, ixz), (ixy, iyy, iyz), (ixz, iyz, izz)))
        position, orientation = origin_of(inertial)
        flat = np.empty(9)
        mujoco.mju_quat2Mat(flat, orientation)
        rotation = flat.reshape(3, 3)
        principal_moments, axes = np.linalg.eigh(rotation @ tensor @ rotation.T)
        axes = axes * np.sign(np.linalg.det(axes))
        principal = np.empty(4)
        mujoco.mju_mat2Quat(principal, axes.ravel())
        body.mass = max(kilograms, SMALL_MASS)
        body.ipos, body.iquat = position, principal
        body.inertia = _checked_moments(name, np.maximum(principal_moments, SMALL_INERTIA))

    def _shown(self, link: Element) -> Iterable[Element]:
        """Return the visual shapes of a link, or its collision shapes if only these are usable."""
        for kind in ('visual', 'collision'):
            shapes = link.findall(kind)
            if shapes and all(self._is_readable(shape) for shape in shapes):
                return shapes
        return ()

    def _is_readable(self, shape: Element, kinds: tuple[str, ...] = READABLE) -> bool:
        mesh = shape.find('geometry/mesh')
        if mesh is None:
            return True
        path = _mesh_path(mesh, self._folder)
        return self._uses_meshes and path is not None and path.suffix.lower() in kinds

    def _add_geom(self, body: Any, shape: Element, pose: Pose, is_solid: bool = False) -> None:
        position, orientation = after(pose, origin_of(shape))
        colour = self._colour(shape.find('material'))
        for solid in shape.iterfind('geometry/*'):
            geom = body.add_geom(pos=position, quat=orientation, rgba=colour, **self._solid(solid))
            geom.contype, geom.conaffinity = int(is_solid), (1 | CONTACT) * int(is_solid)
            if is_solid:
                geom.group = SHOWN_GROUPS  # the first one that is hidden

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
        path = find_file(solid.get('filename', ''), self._folder)
        scale = numbers_of(solid, 'scale', '1 1 1')
        return {'type': kinds.mjGEOM_MESH, 'meshname': self._mesh(path, tuple(scale))}

    def _mesh(self, path: Path, scale: Numbers) -> str:
        """Return the name of a mesh, which several shapes may share."""
        key = path, scale
        if key in self._meshes:
            return self._meshes[key]
        name = f'mesh{len(self.spec.meshes)}'
        if path.suffix.lower() == COLLADA:  # MuJoCo does not read it; only for contacts
            vertices = with_thickness(hull_vertices(mesh_vertices(path) * scale))
            self.spec.add_mesh(name=name, uservert=vertices.ravel())
        else:
            self.spec.add_mesh(name=name, file=str(path), scale=scale)
        self._meshes[key] = name
        return name


def _checked_moments(name: str, moments: Vector) -> Vector:
    """Return principal moments (3,), of which none is larger than the sum of the others."""
    first, second, largest = np.sort(moments)
    if largest > max(ROUNDING * (first + second), UNIMPORTANT):
        raise MassError(
            f'the URDF cannot be simulated with masses: a moment of inertia of {name} is larger '
            f'than the sum of the others: {largest:g}, {second:g} and {first:g} kg m^2'
        )
    return np.minimum(moments, first + second)


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
