"""What is seen of a model: meshes and simple solids, and where they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
from pathlib import Path

from mher_ros.simulation.mesh_files import mesh_file
from mher_ros.tasks.mujoco_task import joint_name
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['robot_bodies', 'Shape', 'Shapes', 'visible_shapes']

Vector = tuple[float, ...]

SHOWN_GROUPS = 3
"""MuJoCo's viewer shows the groups below this; the others hold what is only for contacts."""
DEFAULT_COLOUR = (0.5, 0.5, 0.5, 1.0)
"""A geom of this colour takes that of its material."""
PLANE_THICKNESS, PLANE_SIDE = 0.002, 4.0
"""Of the slab that stands for a plane, and its side where the plane has no end [m]."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """A solid fixed to a body."""

    name: str
    """Unique within its model."""
    kind: str
    """One of box, cylinder (along z), mesh, sphere."""
    size: Vector
    """Full extent along the shape's own axes (3,) [m]; scale (1, 1, 1) for a mesh."""
    rgba: Vector
    """Colour and opacity (4,), each from 0 to 1."""
    body: int
    """Index of the body in the model."""
    position: Vector
    """Centre in the body's frame (3,) [m]."""
    orientation: Vector
    """In the body's frame (4,) (w, x, y, z)."""
    mesh: Path | None = None
    """Binary STL in the shape's own frame [m]."""


class Shapes:
    """Shapes of one model, with a quick way to ask where all of them are."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        self._shapes = tuple(shapes)
        self._bodies = np.array([shape.body for shape in self], int)
        self._positions = np.array([shape.position for shape in self]).reshape(-1, 3, 1)
        self._turns = np.array([_right_product(shape.orientation) for shape in self])

    def poses(self, data: mujoco.MjData) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """
        Return positions (n, 3) [m] and orientations (n, 4) (w, x, y, z) in the world frame.

        They follow from the bodies' poses in ``data``, which must be up to date.
        """
        rotations = data.xmat[self._bodies].reshape(-1, 3, 3)
        positions = data.xpos[self._bodies] + (rotations @ self._positions)[..., 0]
        return positions, (self._turns @ data.xquat[self._bodies, :, None])[..., 0]

    def __iter__(self) -> Iterator[Shape]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def visible_shapes(model: mujoco.MjModel, joint_names: Sequence[str]) -> Shapes:
    """
    List what MuJoCo's viewer would show of the bodies that ``robot_bodies`` names.

    Meshes are written to the user's cache, or to a temporary folder where there is none.
    """
    bodies = set(robot_bodies(model, joint_names))
    return Shapes(
        shape
        for geom in range(model.ngeom)
        if model.geom_bodyid[geom] in bodies and model.geom_group[geom] < SHOWN_GROUPS
        for shape in _shapes_of(model, geom)
        if shape.rgba[3] > 0.0
    )


def robot_bodies(model: mujoco.MjModel, joint_names: Sequence[str]) -> list[int]:
    """
    List the bodies of the robot and of what stands still around it, parents first.

    Not among them is what leads the robot (mocap bodies) and what is moved by joints other than
    ``joint_names`` (a target, say).
    """
    foreign = {
        int(model.jnt_bodyid[joint])
        for joint in range(model.njnt)
        if joint_name(model.joint(joint).name) not in joint_names
    }
    bodies = [0]
    for body in range(1, model.nbody):
        led = model.body_mocapid[body] >= 0 or body in foreign
        if not led and model.body_parentid[body] in bodies:
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
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        yield dataclasses.replace(whole, mesh=mesh_file(model, model.geom_dataid[geom]))
    elif kind == mujoco.mjtGeom.mjGEOM_BOX:
        yield dataclasses.replace(whole, kind='box', size=(x, y, z))
    elif kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        yield dataclasses.replace(whole, kind='sphere', size=(x, x, x))
    elif kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        yield dataclasses.replace(whole, kind='cylinder', size=(x, x, y))
    elif kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        # Neither URDF nor RViz knows capsules.
        yield dataclasses.replace(whole, kind='cylinder', size=(x, x, y))
        for end, height in (('top', y / 2), ('bottom', -y / 2)):
            yield dataclasses.replace(
                whole,
                name=f'{name}_{end}',
                kind='sphere',
                size=(x, x, x),
                position=_shifted(whole, height),
            )
    elif kind == mujoco.mjtGeom.mjGEOM_PLANE:
        yield dataclasses.replace(
            whole,
            kind='box',
            size=(x or PLANE_SIDE, y or PLANE_SIDE, PLANE_THICKNESS),
            position=_shifted(whole, -PLANE_THICKNESS / 2),
        )
    else:
        known = 'mesh, box, sphere, cylinder, capsule or plane'
        raise ValueError(f'geom {name} can be shown as {known}, got {kind.name}')


def _shifted(shape: Shape, height: float) -> Vector:
    """Return the position that is ``height`` further along the shape's own z axis."""
    shift = np.empty(3)
    mujoco.mju_rotVecQuat(shift, np.array((0.0, 0.0, height)), np.array(shape.orientation))
    return tuple((shape.position + shift).tolist())


def _colour(model: mujoco.MjModel, geom: int) -> Vector:
    colour, material = model.geom_rgba[geom], model.geom_matid[geom]
    if material >= 0 and tuple(colour) == DEFAULT_COLOUR:
        colour = model.mat_rgba[material]
    return tuple(round(float(part), 4) for part in colour)


def _right_product(quaternion: Vector) -> NDArray[np.float64]:
    """Return the matrix (4, 4) that multiplies a quaternion by this one from the right."""
    w, x, y, z = quaternion
    return np.array(((w, -x, -y, -z), (x, w, z, -y), (y, -z, w, x), (z, y, -x, w)))
