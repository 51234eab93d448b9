"""Obstacles of a robot file in a simulation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mher_ros.robots.mesh_file import mesh_vertices
from mher_ros.robots.scene import Obstacle, Vector3
from mher_ros.robots.solids import hull_vertices, with_thickness
from mher_ros.simulation.shapes import SHOWN_GROUPS
import mujoco

BODY = 'scene'
CONTACT = 1 << 30  # contact type of obstacles: a bit that no model uses
COLOUR = (0.55, 0.42, 0.35, 1.0)
KINDS = {
    'box': mujoco.mjtGeom.mjGEOM_BOX,
    'sphere': mujoco.mjtGeom.mjGEOM_SPHERE,
    'cylinder': mujoco.mjtGeom.mjGEOM_CYLINDER,
    'plane': mujoco.mjtGeom.mjGEOM_PLANE,
    'mesh': mujoco.mjtGeom.mjGEOM_MESH,
}


def touch_obstacles(spec: Any) -> None:
    """Let obstacles touch every geom that is visible, also one that touches nothing else."""
    for geom in spec.geoms:
        if geom.group < SHOWN_GROUPS and geom.rgba[3] > 0.0:
            geom.conaffinity |= CONTACT


def add_obstacles(spec: Any, obstacles: Sequence[Obstacle]) -> None:
    """
    Add obstacles to an ``MjSpec`` whose world is their frame, as one fixed body.

    Virtual walls are left out.
    """
    solid = [one for one in obstacles if not one.is_virtual]
    if not solid:
        return
    body = spec.worldbody.add_body(name=BODY)
    # It does not move, but MuJoCo finds no centre of mass for a body of planes.
    body.explicitinertial, body.mass = True, 1.0
    body.ipos, body.inertia = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    for obstacle in solid:
        position, orientation = obstacle.pose
        body.add_geom(
            name=obstacle.name,
            type=KINDS[obstacle.shape],
            pos=position,
            quat=orientation,
            rgba=COLOUR,
            contype=CONTACT,
            conaffinity=0,
            **_size(spec, obstacle),
        )


def _size(spec: Any, obstacle: Obstacle) -> dict[str, Any]:
    """Return the size of a geom; a mesh is added to the ``MjSpec``."""
    if obstacle.shape != 'mesh':
        return {'size': geom_size(obstacle.shape, obstacle.size)}
    vertices = hull_vertices(mesh_vertices(Path(obstacle.file), obstacle.scale))
    name = f'{BODY}/{obstacle.name}'
    spec.add_mesh(name=name, uservert=with_thickness(vertices).ravel())
    return {'meshname': name}


def geom_size(shape: str, size: Vector3) -> Vector3:
    """Return MuJoCo's size of a geom for a shape of the size of an ``Obstacle``."""
    first, second, third = size
    return {
        'box': (first / 2.0, second / 2.0, third / 2.0),
        'sphere': (first, 0.0, 0.0),
        'cylinder': (first, second / 2.0, 0.0),
        'plane': (0.0, 0.0, 1.0),  # infinite
    }[shape]
