"""Scenes for ``reach`` with obstacles between the start of the tool and a part of its goals."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path
from typing import Any

from mher_ros.files import write_atomically
from mher_ros.interface import Vector
from mher_ros.learning.config import make_config
from mher_ros.options import os_errors_as_option_errors
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import MARGIN, REACH
from mher_ros.simulation.reach import Reach
from mher_ros.tasks import make
from mher_ros.tasks.rollouts import episode_seed
import numpy as np
import yaml

TASK = 'reach'
SHIFT = 0.03  # by which obstacles are moved after training [m]
STREAM = 4  # part of the seed of a goal: it differs from those of training
SAMPLES = 200  # points of a line that is tested for obstacles
TRIES = 200  # goals that are drawn for one that is wanted


@dataclasses.dataclass(frozen=True)
class SkillScene:
    """Places are relative to the tool at home, in the axes of the base frame [m]."""

    centre: tuple[float, float, float]
    """Of the box of goals, whose edges are those of the task."""
    obstacles: dict[str, dict[str, Any]]
    """By name, as in a robot file."""


# The arm comes from above, or from behind: x is the direction in which it reaches out. In each
# scene postures at goals behind the obstacles exist for Fetch, UR5e and Panda, and motions to
# them, which a randomised planner found (within the clearance of the safety filter).
SCENES = {
    'wall': SkillScene(
        (0.13, 0.0, 0.0),
        {'wall': {'shape': 'box', 'position': (0.10, 0.0, -0.08), 'size': (0.03, 0.4, 0.26)}},
    ),
    'box': SkillScene(
        (0.13, 0.0, 0.0),
        {'box': {'shape': 'box', 'position': (0.13, 0.0, -0.08), 'size': (0.08, 0.22, 0.26)}},
    ),
    'pillars': SkillScene(
        (0.13, 0.0, 0.0),
        {
            side: {
                'shape': 'cylinder',
                'position': (0.11, y, -0.06),
                'radius': 0.04,
                'length': 0.30,
            }
            for side, y in (('left', 0.08), ('right', -0.08))
        },
    ),
}
"""A wall that only the tool can pass above; a box and two pillars that it can also pass beside."""

HOMES = {'ur5e': (0.0, -1.9, 2.3, -1.97, -1.5708, 0.0)}
"""Joint positions at home that replace those of the robot file: with a higher elbow [rad]."""


def scene_file(robot: str, scene: str, folder: Path, shift: float = 0.0) -> Path:
    """
    Write the file of a robot with a scene into ``folder``, and return its path.

    ``shift``: displacement of the obstacles along x [m].
    """
    original, chosen = load_robot(robot), SCENES[scene]
    home = dict(original.home)
    if original.name in HOMES:
        home = dict(zip(original.joints, HOMES[original.name], strict=True))
    start = _tool_at(robot, home)
    centre = start + chosen.centre
    low, high = centre - REACH - MARGIN, centre + REACH + MARGIN
    if original.box:  # what is below it may be missing in the scene
        low[2] = max(low[2], original.box.low[2])
    obstacles = {}
    for name, obstacle in chosen.obstacles.items():
        place = start + obstacle['position'] + np.array([shift, 0.0, 0.0])
        obstacles[name] = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in {**obstacle, 'position': _rounded(place)}.items()
        }
    [source] = original.folder.glob(f'{original.name}.y*ml')
    content = yaml.safe_load(source.read_text())
    content |= {
        'home': home,
        'workspace': {'origin': _rounded(centre)},
        'box': {'low': _rounded(low), 'high': _rounded(high)},
        'scene': obstacles,
    }
    moved = f'{1000.0 * shift:+.0f}mm' if shift else ''
    path = folder / f'{original.name}-{scene}{moved}.yaml'
    with os_errors_as_option_errors(f'cannot write into the folder {folder}'):
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, yaml.safe_dump(content, sort_keys=False).encode())
    return path


def _tool_at(robot: str, home: Mapping[str, float]) -> Vector:
    """Return the position of a robot's tool (3,) [m] at joint positions by name."""
    task = make(TASK, make_config(TASK, changes={'task.robot': robot}).task)
    assert isinstance(task, Reach)
    return task.arm.tool_position(np.array([home.get(name, 0.0) for name in task.joint_names]))


def draw_goals(task: Reach, seed: int, behind: int, others: int) -> tuple[Vector, Vector]:
    """
    Return goals of the task (n, 3) that are behind obstacles, and others.

    There are at most as many as asked for. A goal is behind an obstacle if that is on the line
    from the tool at the start of the episode, and also on this line at the height of the goal: a
    motion that only slides along the obstacle does not get there.
    """
    found: dict[bool, list[Vector]] = {True: [], False: []}
    wanted = {True: behind, False: others}
    for index in range(TRIES * max(behind, others, 1)):
        if all(len(found[kind]) == wanted[kind] for kind in found):
            break
        start, _ = task.reset(seed=episode_seed(seed, STREAM, index))
        goal = start['desired_goal'][:3]
        tool = task.tool_pose()[0]
        level = np.array([*tool[:2], goal[2]])
        is_behind = all(is_blocked(task.arm, point, goal) for point in (tool, level))
        if len(found[is_behind]) < wanted[is_behind]:
            found[is_behind].append(goal)
    return np.reshape(found[True], (-1, 3)), np.reshape(found[False], (-1, 3))


def is_blocked(arm: ArmModel, start: Vector, end: Vector) -> bool:
    """Return whether an obstacle is on the line between two points (3,) [m]."""
    parts = arm.collision.parts if arm.collision else ()
    solids = [part.solid for part in parts if part.is_obstacle]
    points = start + np.linspace(0.0, 1.0, SAMPLES)[:, None] * (end - start)
    return any(solid.contains(point) for solid in solids for point in points)


def _rounded(place: Vector) -> list[float]:
    return [round(float(part), 6) for part in place]
