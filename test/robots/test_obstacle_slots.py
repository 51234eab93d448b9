"""An obstacle in a slot is the same as one of the robot file."""

import dataclasses
import math

from arm_models import load_arm, model_text
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.scene import Obstacle
from mher_ros.robots.solids import obstacle_solid
import numpy as np
import pytest

NEAR = 1e-6
"""MuJoCo keeps vertices of meshes with single precision [m]."""


def obstacles_around(point, count, random):
    """Return boxes, spheres and cylinders in any orientation."""
    return [
        Obstacle(
            f'it/{number}',
            ('box', 'sphere', 'cylinder')[number % 3],
            tuple(point + random.uniform(-0.4, 0.4, 3)),
            tuple(random.uniform(-math.pi, math.pi, 3)),
            tuple(random.uniform(0.03, 0.3, 3)),
        )
        for number in range(count)
    ]


def distances(model, posture):
    """Return the distances of obstacles from links by name, in order [m]."""
    query, found = PairDistances(model), {}
    query.move(posture)
    pairs = np.flatnonzero(np.isfinite(model.clearances))
    for pair, distance in zip(pairs, query.evaluate(pairs), strict=True):
        if model.parts[model.pairs[pair, 0]].is_obstacle:
            found.setdefault(model.names(pair), []).append(distance)
    return {names: sorted(several) for names, several in found.items()}


@pytest.mark.parametrize('name', ['panda', 'fetch'])
def test_distances_are_those_of_the_same_obstacles_in_the_robot_file(name):
    robot, arm = load_arm(name, avoids_collisions=True)
    random = np.random.default_rng(1)
    home = np.array([robot.home.get(joint, 0.0) for joint in arm.state_names])
    obstacles = obstacles_around(arm.tool_position(home), SLOTS, random)
    in_file = dataclasses.replace(robot, scene=tuple(obstacles))
    text = model_text(name) if robot.simulation_task else None
    fixed = ArmModel(in_file if text else in_file.simulated(), text).collision
    slots = arm.obstacle_slots()
    for others in (obstacles[::-1], obstacles):  # whatever was in a slot before
        for slot, one in enumerate(others):
            slots.put(slot, one.name, obstacle_solid(one), 0.0, 0.0)
    for _ in range(10):
        posture = (home + random.normal(0.0, 0.3, len(home)))[arm.order]
        found, expected = distances(slots, posture), distances(fixed, posture)
        assert found.keys() == expected.keys()
        assert len(found) > SLOTS
        for names, several in expected.items():
            assert found[names] == pytest.approx(several, abs=NEAR)


def test_an_empty_slot_is_nowhere():
    robot, arm = load_arm('panda', avoids_collisions=True)
    slots = arm.obstacle_slots()
    posture = np.array([robot.home[joint] for joint in arm.joint_names])
    assert not distances(slots, posture)
    ball = Obstacle('ball/0', 'sphere', tuple(arm.tool_position(posture)), size=(0.1, 0.0, 0.0))
    slots.put(3, ball.name, obstacle_solid(ball), 0.0, 0.0)
    assert min(distances(slots, posture).values())[0] < 0.0
    assert [part.name for part in slots.obstacles] == ['ball/0']
    slots.remove(3)
    assert not distances(slots, posture)
    assert not slots.obstacles


def test_a_link_and_an_obstacle_may_touch_if_the_robot_file_says_so():
    robot, arm = load_arm('panda', avoids_collisions=True)
    posture = np.array([robot.home[joint] for joint in arm.joint_names])
    ball = Obstacle('held/0', 'sphere', tuple(arm.tool_position(posture)), size=(0.1, 0.0, 0.0))
    collision = dataclasses.replace(robot.collision, ignore=(('panda_hand', 'held/0'),))
    slots = ArmModel(dataclasses.replace(robot, collision=collision).simulated()).obstacle_slots()
    slots.put(0, ball.name, obstacle_solid(ball), 0.0, 0.0)
    links = {link for _, link in distances(slots, posture)}
    assert 'panda_hand' not in links
    assert 'panda_link7' in links


def test_bounds_of_distances_are_never_too_large():
    robot, arm = load_arm('ur5e', avoids_collisions=True)
    random, slots = np.random.default_rng(2), arm.obstacle_slots()
    home = np.array([robot.home[joint] for joint in arm.joint_names])
    for slot, one in enumerate(obstacles_around(arm.tool_position(home), SLOTS, random)):
        slots.put(slot, one.name, obstacle_solid(one), 0.0, 0.0)
    query, every = PairDistances(slots), np.arange(len(slots.pairs))
    for _ in range(10):
        query.move(home + random.normal(0.0, 0.5, len(home)))
        found, bounds = query.evaluate(every), query.least(slots.pairs)
        # Of parts that penetrate, a distance may be too small.
        assert (bounds <= np.maximum(found, 0.0) + 1e-9).all()
        assert bounds.max() > 0.1
