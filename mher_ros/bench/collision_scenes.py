"""Random scenes round an arm: a table, and obstacles in and around its workspace."""

import dataclasses
import math

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import CollisionModel, PairDistances
from mher_ros.robots.robot import Robot, RobotError
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.workspace import Workspace
from mher_ros.simulation.joint_plant import JointPlant
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

OBSTACLES, SIZES = 5, (0.03, 0.1)  # besides the table; half an edge, or radius [m]
CROWD, SMALL = 95, (0.01, 0.02)  # the same for a crowded scene
AROUND = 0.15  # how far from the workspace obstacles stand [m]
FREE = 0.04  # least distance of an obstacle from the arm at home [m]
CROWDED = 0.02, 0.05  # least and largest distance of a small obstacle from the arm at home [m]
BELOW = 0.05  # of the table below the workspace [m]


def random_scene(
    robot: Robot, space: Workspace, random: np.random.Generator, is_crowded: bool = False
) -> Robot:
    """
    Return the robot with obstacles that do not touch it at home.

    ``is_crowded``: many small ones near the arm instead of a few large ones.
    """
    if is_crowded:
        scene = _crowd(robot, random)
    else:
        obstacles = [_obstacle(f'obstacle{n}', space, random) for n in range(OBSTACLES)]
        scene = _freed(robot, space, [*_table(robot, space), *obstacles], random)
    return dataclasses.replace(robot, scene=tuple(scene))


def _table(robot: Robot, space: Workspace) -> list[Obstacle]:
    """Return a table below the workspace; Fetch and Sawyer have one."""
    if robot.simulation_task:
        return []
    x, y, _ = (space.low + space.high) / 2.0
    z = float(space.low[2]) - BELOW - 0.05
    return [Obstacle('table', 'box', (float(x) + 0.1, float(y), z), size=(0.5, 0.8, 0.1))]


def _obstacle(name: str, space: Workspace, random: np.random.Generator) -> Obstacle:
    place = random.uniform(space.low - AROUND, space.high + AROUND)
    return _solid(name, place, SIZES, random)


def _solid(
    name: str, place: Vector, sizes: tuple[float, float], random: np.random.Generator
) -> Obstacle:
    shape = str(random.choice(('box', 'sphere', 'cylinder')))
    turn, size = random.uniform(-math.pi, math.pi, 3), 2.0 * random.uniform(*sizes, 3)
    if shape != 'box':
        size[0] /= 2.0
    x, y, z = map(float, place)
    roll, pitch, yaw = map(float, turn)
    length, width, height = map(float, size)
    return Obstacle(name, shape, (x, y, z), (roll, pitch, yaw), (length, width, height))


def _crowd(robot: Robot, random: np.random.Generator) -> list[Obstacle]:
    """Return small obstacles near the arm at home, but not too near."""
    places, sizes = _parts_at_home(robot)
    (least, most), kept = CROWDED, list[Obstacle]()
    while len(kept) < CROWD:
        tried = []
        for number, part in enumerate(random.integers(len(places), size=CROWD)):
            away = random.normal(size=3)
            away *= (sizes[part] + random.uniform(0.0, most)) / np.linalg.norm(away)
            tried.append(_solid(f'small{number}', places[part] + away, SMALL, random))
        distances = _distances_at_home(robot, tried)
        near = [one for one in tried if least < distances.get(one.name, math.inf) < most]
        kept += [
            dataclasses.replace(one, name=f'small{number}')
            for number, one in enumerate(near, len(kept))
        ]
    return kept[:CROWD]


def _parts_at_home(robot: Robot) -> tuple[Vector, Vector]:
    """Return the centres (m, 3) and sizes (m,) of the moving parts of the arm at home [m]."""
    model, query = _query_at_home(robot, [])
    moving = np.flatnonzero(model.bodies > 0)
    bodies = model.bodies[moving]
    turns = query.data.xmat.reshape(-1, 3, 3)[bodies]
    places = query.data.xpos[bodies] + (turns @ model.centres[moving][:, :, None])[:, :, 0]
    return places, model.sizes[moving]


def _freed(
    robot: Robot, space: Workspace, scene: list[Obstacle], random: np.random.Generator
) -> list[Obstacle]:
    """Move obstacles that are too near to the arm at home; the table moves down."""
    while True:
        distances = _distances_at_home(robot, scene)
        near = {name for name, distance in distances.items() if distance < FREE}
        if not near:
            return scene
        scene = [_moved(one, space, random) if one.name in near else one for one in scene]


def _moved(obstacle: Obstacle, space: Workspace, random: np.random.Generator) -> Obstacle:
    if obstacle.name != 'table':
        return _obstacle(obstacle.name, space, random)
    x, y, z = obstacle.position
    return dataclasses.replace(obstacle, position=(x, y, z - FREE))


def _distances_at_home(robot: Robot, scene: list[Obstacle]) -> dict[str, float]:
    """Return the distance of the arm at home from each obstacle [m]."""
    model, query = _query_at_home(robot, scene)
    found: dict[str, float] = {}
    distances = query.evaluate(np.arange(len(model.pairs)))
    for first, distance in zip(model.pairs[:, 0].tolist(), distances.tolist(), strict=True):
        part = model.parts[first]
        if part.is_obstacle:
            found[part.name] = min(distance, found.get(part.name, math.inf))
    return found


def _query_at_home(robot: Robot, scene: list[Obstacle]) -> tuple[CollisionModel, PairDistances]:
    """Return the collision model of the arm among obstacles, and its distances at home."""
    # The robot file may have collision avoidance off.
    collision = dataclasses.replace(robot.collision, enabled=True)
    arm = _arm(dataclasses.replace(robot, collision=collision, scene=tuple(scene)))
    if arm.collision is None:
        raise RobotError(f'robot {robot.name}: its model has no collision shapes')
    query = PairDistances(arm.collision)
    home = np.array([arm.home.get(name, 0.0) for name in arm.state_names])
    query.move(home[arm.order])
    return arm.collision, query


def _arm(robot: Robot) -> ArmModel:
    if robot.simulation_task:
        return ArmModel(robot, JointPlant(robot.simulation_task).description(robot.name))
    return ArmModel(robot.simulated())
