"""The visible shapes of a model: meshes and simple solids with their poses."""

from collections.abc import Iterator, Sequence
import dataclasses
import functools
import hashlib
import os
from pathlib import Path
import re
import tempfile

from mher_ros.files import write_atomically
from mher_ros.tasks.mujoco_task import joint_name
import mujoco
import numpy as np
from numpy.typing import NDArray

Vector = tuple[float, ...]

FIXED = ':fixed'  # after the name of a link that is fixed to the world, but not part of it
SHOWN_GROUPS = 3  # MuJoCo's viewer shows groups below it; the others are for contacts
DEFAULT_COLOUR = (0.5, 0.5, 0.5, 1.0)  # a geom of this colour has that of its material
PLANE_THICKNESS, PLANE_SIDE = 0.002, 4.0  # of the box for a plane; side if it is infinite [m]
SOLID_SIDE = 10.0  # of the box that is touched: for contacts, every plane is infinite [m]


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str  # unique within its model
    kind: str  # one of box, cylinder (along z), mesh, sphere
    size: Vector  # full extent along the shape's own axes (3,) [m]; scale (1, 1, 1) for a mesh
    rgba: Vector  # colour and opacity (4,), each from 0 to 1
    body: int  # index of the body in the model
    position: Vector  # centre in the body's frame (3,) [m]
    orientation: Vector  # in the body's frame (4,) (w, x, y, z)
    mesh: Path | None = None  # binary STL in the shape's own frame [m]
    touched: Vector | None = None  # size of what is touched, if it is another one (3,) [m]


class Shapes(tuple[Shape, ...]):
    def poses(self, data: mujoco.MjData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return positions (n, 3) [m] and orientations (n, 4) (w, x, y, z) in the world frame."""
        positions, orientations = np.empty((len(self), 3)), np.empty((len(self), 4))
        for shape, position, orientation in zip(self, positions, orientations, strict=True):
            body = data.xpos[shape.body], data.xquat[shape.body]
            mujoco.mju_mulPose(position, orientation, *body, shape.position, shape.orientation)
        return positions, orientations


def visible_shapes(model: mujoco.MjModel, joint_names: Sequence[str]) -> Shapes:
    """Return the shapes of ``robot_bodies`` that MuJoCo's viewer shows."""
    bodies = set(robot_bodies(model, joint_names))
    return Shapes(
        shape
        for geom in range(model.ngeom)
        if model.geom_bodyid[geom] in bodies and model.geom_group[geom] < SHOWN_GROUPS
        for shape in _shapes_of(model, geom)
        if shape.rgba[3] > 0.0
    )


def robot_bodies(model: mujoco.MjModel, joint_names: Sequence[str]) -> list[int]:
    """List the bodies of the robot and of fixed objects around it, parents first."""
    foreign = {
        int(model.jnt_bodyid[joint])
        for joint in range(model.njnt)
        if joint_name(model.joint(joint).name) not in joint_names
    }
    bodies = [0]
    for body in range(1, model.nbody):
        # Without mocap bodies and bodies with other joints, for example a target.
        is_other = model.body_mocapid[body] >= 0 or body in foreign
        if not is_other and model.body_parentid[body] in bodies:
            bodies.append(body)
    return bodies


def _shapes_of(model: mujoco.MjModel, geom: int) -> Iterator[Shape]:
    kind = mujoco.mjtGeom(model.geom_type[geom])
    name = model.geom(geom).name or f'{model.body(model.geom_bodyid[geom]).name}_{geom}'
    name = name.removeprefix('robot0:')
    whole = Shape(
        name=name,
        kind='mesh',
        size=(1.0, 1.0, 1.0),
        rgba=_colour(model, geom),
        body=int(model.geom_bodyid[geom]),
        position=tuple(model.geom_pos[geom].tolist()),
        orientation=tuple(model.geom_quat[geom].tolist()),
    )
    x, y, z = (2.0 * model.geom_size[geom]).tolist()
    change = functools.partial(dataclasses.replace, whole)
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        yield change(mesh=mesh_file(model, model.geom_dataid[geom]))
    elif kind == mujoco.mjtGeom.mjGEOM_BOX:
        yield change(kind='box', size=(x, y, z))
    elif kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        yield change(kind='sphere', size=(x, x, x))
    elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        yield change(kind='cylinder', size=(x, x, y))
    elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        # Neither URDF nor RViz has capsules.
        yield change(kind='cylinder', size=(x, x, y))
        for end, height in (('top', y / 2), ('bottom', -y / 2)):
            place, name_of_end = _shifted(whole, height), f'{name}_{end}'
            yield change(name=name_of_end, kind='sphere', size=(x, x, x), position=place)
    elif kind == mujoco.mjtGeom.mjGEOM_PLANE:
        place, slab = _shifted(whole, -PLANE_THICKNESS / 2), (x or PLANE_SIDE, y or PLANE_SIDE)
        solid = (SOLID_SIDE, SOLID_SIDE, PLANE_THICKNESS)
        yield change(kind='box', size=(*slab, PLANE_THICKNESS), position=place, touched=solid)
    else:
        known = 'mesh, box, sphere, cylinder, capsule or plane'
        raise ValueError(f'geom {name} can be shown as {known}, got {kind.name}')


def _shifted(shape: Shape, height: float) -> Vector:
    """Return the position of a shape, shifted by ``height`` along its own z axis."""
    shift = np.empty(3)
    mujoco.mju_rotVecQuat(shift, np.array((0.0, 0.0, height)), np.array(shape.orientation))
    return tuple((shape.position + shift).tolist())


def _colour(model: mujoco.MjModel, geom: int) -> Vector:
    colour, material = model.geom_rgba[geom], model.geom_matid[geom]
    if material >= 0 and tuple(colour) == DEFAULT_COLOUR:
        colour = model.mat_rgba[material]
    return tuple(round(float(part), 4) for part in colour)


def mesh_file(model: mujoco.MjModel, mesh: int) -> Path:
    """Return a binary STL file of a mesh in the frame of its geoms; write it if it is missing."""
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    vertices = model.mesh_vert[first : first + count]
    first, count = model.mesh_faceadr[mesh], model.mesh_facenum[mesh]
    content = _stl(vertices[model.mesh_face[first : first + count]])
    name = re.sub(r'\W+', '_', model.mesh(mesh).name.removeprefix('robot0:')) or 'mesh'
    below = Path(hashlib.sha256(content).hexdigest()[:16]) / f'{name}.stl'
    for folder in (_cache_folder, lambda: Path(_own_temporary_folder().name)):
        try:
            path = folder() / below
            if not path.is_file() or path.read_bytes() != content:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, content)
            return path
        except (OSError, RuntimeError) as error:  # no home, no permission, a full disk
            refused = error
    raise refused


def _stl(triangles: NDArray[np.float32]) -> bytes:
    facets = np.zeros(
        len(triangles), [('normal', '<f4', 3), ('vertices', '<f4', (3, 3)), ('attribute', '<u2')]
    )
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    facets['normal'] = normals / np.where(lengths > 0.0, lengths, 1.0)
    facets['vertices'] = triangles
    return bytes(80) + np.uint32(len(facets)).astype('<u4').tobytes() + facets.tobytes()


def _cache_folder() -> Path:
    given = os.environ.get('XDG_CACHE_HOME', '')
    cache = Path(given) if os.path.isabs(given) else Path.home() / '.cache'
    return cache / 'mher_ros' / 'meshes'


@functools.cache
def _own_temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that is removed at the end of this process."""
    return tempfile.TemporaryDirectory(prefix='mher_ros_meshes_')
