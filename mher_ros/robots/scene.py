"""Obstacles around an arm, and the options of collision avoidance, in the robot file."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from mher_ros.errors import MherError
from mher_ros.options import Settings, SettingsError

if TYPE_CHECKING:
    from mher_ros.robots.description import Pose

Vector3 = tuple[float, float, float]

KEEP_IN = 'keep_in'
SHAPES = ('box', 'sphere', 'cylinder', 'plane', 'mesh', KEEP_IN)
SMALLEST, LARGEST = 1e-3, 10.0  # edge, radius or length of an obstacle [m]
SMALLEST_SCALE, LARGEST_SCALE = 1e-6, 1e6  # of a mesh
FARTHEST = 100.0  # largest coordinate of an obstacle [m]
MAX_OBSTACLES = 100


@dataclasses.dataclass(frozen=True)
class CollisionOptions:
    """How the arm is kept away from itself and from obstacles."""

    enabled: bool = True
    """Whether outputs that command joints avoid collisions."""
    clearance: float = 0.01
    """Least distance between two parts of the arm, and from obstacles [m]."""
    ignore: tuple[tuple[str, str], ...] = ()
    """Pairs of links, or of a link and an obstacle, that may touch."""
    srdf: str = ''
    """Address of an SRDF, whose pairs of ``disable_collisions`` may touch; empty: none."""
    obstacle_speed: float = 0.2
    """Largest speed of an obstacle that moves [m/s]."""
    obstacle_timeout: float = 0.5
    """Time without an update after which the place of such an obstacle is not known [s]."""


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """A fixed solid in the base frame, or a virtual wall."""

    name: str
    shape: str
    """
    One of ``SHAPES``; a cylinder is along its z axis, a plane is solid below it, and ``keep_in``
    is everything outside of a box.
    """
    position: Vector3
    """Of its centre, or of a point of the plane [m]."""
    rpy: Vector3 = (0.0, 0.0, 0.0)
    """Rotation about the fixed axes x, y and z [rad]."""
    size: Vector3 = (0.0, 0.0, 0.0)
    """Edges of a box; radius of a sphere; radius and length of a cylinder; else unused [m]."""
    file: str = ''
    """Path of a mesh, whose convex hull is the solid."""
    scale: Vector3 = (1.0, 1.0, 1.0)
    """Of a mesh."""
    links: tuple[str, ...] = ()
    """Links for which it holds; empty: all that move."""

    @property
    def is_virtual(self) -> bool:
        """Whether it only limits links, and is nothing that can be touched."""
        return bool(self.links) or self.shape == KEEP_IN

    @property
    def pose(self) -> 'Pose':
        """Its pose in the base frame."""
        from mher_ros.robots.description import pose_of  # MuJoCo: not needed to read a file

        return pose_of(self.position, self.rpy)


def read_collision(settings: Settings) -> CollisionOptions:
    """Read the section ``collision``."""
    options = CollisionOptions(
        enabled=settings.flag('enabled', CollisionOptions.enabled),
        clearance=settings.number('clearance', CollisionOptions.clearance, low=1e-3, high=0.5),
        ignore=settings.pairs('ignore'),
        srdf=settings.text('srdf', ''),
        obstacle_speed=settings.number(
            'obstacle_speed', CollisionOptions.obstacle_speed, low=0.0, high=2.0
        ),
        obstacle_timeout=settings.number(
            'obstacle_timeout', CollisionOptions.obstacle_timeout, low=0.05, high=10.0
        ),
    )
    settings.finish()
    return options


def read_scene(settings: Settings, folder: Path) -> tuple[Obstacle, ...]:
    """Read the section ``scene``: obstacles by name; ``folder``: of the robot file."""
    names = settings.keys()
    if len(names) > MAX_OBSTACLES:
        raise SettingsError(f'scene has at most {MAX_OBSTACLES} obstacles, got {len(names)}')
    obstacles = tuple(_read_obstacle(name, settings.section(name), folder) for name in names)
    settings.finish()
    return obstacles


def _read_obstacle(name: str, settings: Settings, folder: Path) -> Obstacle:
    shape = settings.choice('shape', SHAPES)
    position = settings.vector3('position')
    rpy = settings.vector3('rpy', (0.0, 0.0, 0.0))
    links = settings.words('links', ())
    if max(map(abs, position)) > FARTHEST:
        raise SettingsError(
            f'scene.{name}.position is within {FARTHEST:g} m of the base frame; got {position}'
        )
    size: Vector3 = (0.0, 0.0, 0.0)
    file, scale = '', Obstacle.scale
    if shape in ('box', KEEP_IN):
        size = settings.vector3('size')
        if not all(SMALLEST <= edge <= LARGEST for edge in size):
            raise SettingsError(
                f'scene.{name}.size takes edges from {SMALLEST:g} to {LARGEST:g} m; got {size}'
            )
    elif shape in ('sphere', 'cylinder'):
        radius = settings.number('radius', low=SMALLEST, high=LARGEST)
        length = 0.0
        if shape == 'cylinder':
            length = settings.number('length', low=SMALLEST, high=LARGEST)
        size = radius, length, 0.0
    elif shape == 'mesh':
        file = _mesh_file(name, settings.text('file'), folder)
        scale = settings.vector3('scale', scale)
        if not all(SMALLEST_SCALE <= abs(one) <= LARGEST_SCALE for one in scale):
            raise SettingsError(
                f'scene.{name}.scale is from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}; got {scale}'
            )
    settings.finish()
    return Obstacle(name, shape, position, rpy, size, file, scale, links)


def _mesh_file(name: str, address: str, folder: Path) -> str:
    from mher_ros.robots.model_file import find_file  # MuJoCo, as above

    try:
        return str(find_file(address, folder))
    except MherError as error:
        raise SettingsError(f'scene.{name}.file: {error}') from None
