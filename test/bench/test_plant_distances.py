"""Distances in a simulation, which the adversary of the benchmark of collisions uses."""

from mher_ros.bench.collision_scenes import random_scene
from mher_ros.bench.plant_distances import PlantDistances
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest


@pytest.fixture(scope='module', params=['fetch', 'panda'])
def world(request):
    robot = load_robot(request.param)
    space = place_workspace(make('fetch_reach').interface, robot)
    return DynamicArm(random_scene(robot, space, np.random.default_rng(0)), 'joint_position')


def postures(world, count):
    low, high = world.model.jnt_range.T
    limited = world.model.jnt_limited.astype(bool)
    low, high = np.where(limited, low, -np.pi), np.where(limited, high, np.pi)
    return np.random.default_rng(1).uniform(low, high, (count, world.model.nv))


def test_pairs_are_those_of_which_mujoco_finds_contacts(world):
    model, data = world.model, mujoco.MjData(world.model)
    distances = PlantDistances(model)
    pairs = {tuple(sorted(pair)) for pair in distances.pairs.tolist()}
    touching = 0
    for posture in postures(world, 200):
        data.qpos[:] = posture
        mujoco.mj_forward(model, data)
        found = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
        assert found <= pairs
        touching += len(found)
    assert touching > 100


def test_gradients_are_those_of_the_distances(world):
    distances, wrong, count = PlantDistances(world.model), 0, 0
    random = np.random.default_rng(2)
    for posture in postures(world, 20):
        for rank, near in enumerate(distances.nearest(posture, 5)):
            if near.distance < 0.005:  # the depth of a contact is approximate
                continue
            moved = random.normal(0.0, 1e-5, len(posture))
            ends = [distances.nearest(posture + sign * moved, 5)[rank] for sign in (-0.5, 0.5)]
            change = ends[1].distance - ends[0].distance
            # Where two points are nearest, the gradient is that of one of them.
            wrong += abs(change - near.gradient @ moved) > 2e-7
            count += 1
    assert count > 20
    assert wrong < 0.2 * count
