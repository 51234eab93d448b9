"""Reads the parts of an arm and its obstacles: solids that are fixed to bodies of its model."""

from collections.abc import Mapping
import dataclasses
from pathlib import Path

from mher_ros.errors import MherError
from mher_ros.robots.collision_model import Part
from mher_ros.robots.description import after, Description, DescriptionError, Pose, some, turned
from mher_ros.robots.mjcf_shapes import mjcf_shapes
from mher_ros.robots.model_file import parse_model
from mher_ros.robots.robot import Robot, RobotError
from mher_ros.robots.scene import KEEP_IN, Obstacle
from mher_ros.robots.solids import merged, obstacle_solids
from mher_ros.robots.urdf_shapes import MAX_SHAPES, urdf_shapes
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class ArmParts:
    """What can collide."""

    parts: tuple[Part, ...] = ()
    """Of the arm and its obstacles."""
    missing: tuple[tuple[str, str], ...] = ()
    """Links of which shapes are left out, each with the reason."""
    excluded: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that may touch, as the model says."""


def read_parts(
    text: str, folder: Path, description: Description, robot: Robot, base: str, moving: list[str]
) -> ArmParts:
    """
    Read the parts of an arm and its obstacles.

    ``text`` is a URDF or MJCF whose files are named relative to ``folder``; ``moving``: the joints
    of the chain. Other joints are at ``home`` of the robot file, or at 0.
    """
    top = parse_model(text)
    places = _places(description, base, moving, robot.home)
    excluded: set[frozenset[str]] = set()
    if top.tag == 'robot':
        shapes = list(urdf_shapes(top, folder))
    else:
        shapes, excluded = mjcf_shapes(top, folder)
    if len(shapes) > MAX_SHAPES:
        raise DescriptionError(f'a robot of at most {MAX_SHAPES} shapes is expected, got more')
    obstacles = {obstacle.name for obstacle in robot.scene}
    parts: list[Part] = []
    missing: dict[tuple[str, str], None] = {}
    for link, (body, pose) in places.items():
        solids = []
        for shape in (one for one in shapes if one.link == link):
            if body == 0 and shape.name in obstacles:
                continue  # a simulation describes the obstacles, too
            if shape.solid is None:
                missing[link, shape.trouble] = None
            elif shape.solid.normal is not None and body:
                missing[link, 'a plane that moves is not supported'] = None
            else:
                solids.append(shape.solid.at(pose))
        parts += [Part(link, body, solid) for solid in merged(solids)]
    can_move = list(dict.fromkeys(part.name for part in parts if part.body))
    parts += [part for one in robot.scene for part in _obstacle_parts(one, robot, can_move)]
    return ArmParts(tuple(parts), tuple(missing), frozenset(excluded))


def _obstacle_parts(obstacle: Obstacle, robot: Robot, can_move: list[str]) -> list[Part]:
    """Return the parts of an obstacle; ``can_move``: links with shapes that move."""
    unknown = [link for link in obstacle.links if link not in can_move]
    if unknown:
        raise RobotError(
            f'robot {robot.name}: scene.{obstacle.name}.links are links that move and have a '
            f'collision shape ({some(can_move)}); got {some(unknown)}'
        )
    links = obstacle.links or (can_move if obstacle.shape == KEEP_IN else ())
    try:
        solids = obstacle_solids(obstacle)
    except (MherError, OSError) as error:
        raise RobotError(f'robot {robot.name}: scene.{obstacle.name}: {error}') from None
    return [Part(obstacle.name, 0, solid, True, frozenset(links)) for solid in solids]


def _places(
    description: Description, base: str, moving: list[str], home: Mapping[str, float]
) -> dict[str, tuple[int, Pose]]:
    """Return the body and the pose in it for each link whose place is known."""
    children: dict[str, list[int]] = {link: [] for link in description.links}
    for index, joint in enumerate(description.joints):
        children[joint.parent].append(index)
    try:
        root, pose = description.root, description.chain(base, description.root)[0]
    except DescriptionError:  # a joint moves the base: what is above it is not known
        root, pose = base, (np.zeros(3), turned((1.0, 0.0, 0.0), 0.0))
    places = {root: (0, pose)}
    left = [root]
    while left:
        link = left.pop()
        body, pose = places[link]
        for joint in (description.joints[index] for index in children[link]):
            there = after(pose, joint.origin)
            if joint.name in moving:
                place = moving.index(joint.name) + 1, (np.zeros(3), turned(joint.axis, 0.0))
            else:
                at = float(np.clip(home.get(joint.name, 0.0), joint.lower, joint.upper))
                if joint.kind == 'slide':
                    there = after(there, (at * joint.axis, turned(joint.axis, 0.0)))
                elif joint.kind == 'hinge':
                    there = after(there, (np.zeros(3), turned(joint.axis, at)))
                place = body, there
            places[joint.child] = place
            left.append(joint.child)
    return places
