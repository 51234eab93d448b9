"""Obstacles that are put in the way of a simulated arm while it runs."""

import dataclasses

from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import Obstacle
from mher_ros.simulation import driven_plant
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.plant import TaskPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
import mujoco
import numpy as np
import pytest

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
TILTED = (0.8, 0.36, 0.48, 0.0)


def make_plant(name, scene=()):
    robot = dataclasses.replace(load_robot(name), scene=scene)
    if robot.simulation_task:
        return JointPlant(robot.simulation_task, scene)
    return UrdfPlant(robot)


def commanded(plant):
    """Return the positions of the commanded joints (k,)."""
    places = [plant.joint_names.index(name) for name in plant.command_names]
    return plant.joint_state()[0][places]


def place_beside(plant):
    """Return where the tool is after the first joint has turned by 0.7 rad."""
    target = commanded(plant) + 0.7 * np.eye(len(plant.command_names))[0]
    for _ in range(300):
        plant.advance(target)
    place, _ = plant.tool_pose()
    plant.reset()
    return place


def turn(plant, steps=200, by=0.8):
    """Turn the first joint, and return by how much it turned."""
    start = commanded(plant)
    target = start + by * np.eye(len(start))[0]
    for _ in range(steps):
        plant.advance(target)
    return commanded(plant)[0] - start[0]


@pytest.mark.parametrize('name', ['fetch', 'sawyer', 'panda', 'ur5e'])
@pytest.mark.parametrize(
    ('shape', 'size'),
    [('box', (0.06, 0.08, 0.4)), ('sphere', (0.12, 0.0, 0.0)), ('cylinder', (0.06, 0.4, 0.0))],
)
def test_an_arm_is_held_up_by_what_is_put_in_its_way_until_it_is_removed(name, shape, size):
    plant = make_plant(name)
    place = place_beside(plant)
    plant.put_obstacle('post', shape, size, place, UPRIGHT)
    assert turn(plant) < 0.798  # its other joints give way
    assert plant.contacts().deepest > 0.0
    assert 'post' in plant.contacts().between
    plant.remove_obstacle('post')
    plant.reset()
    assert turn(plant) == pytest.approx(0.8, abs=1e-3)
    assert plant.contacts() == (0, 0.0, '')


@pytest.mark.parametrize('name', ['fetch', 'panda'])
@pytest.mark.parametrize(
    ('shape', 'size'),
    [('box', (0.06, 0.1, 0.4)), ('sphere', (0.08, 0.0, 0.0)), ('cylinder', (0.06, 0.4, 0.0))],
)
def test_it_touches_as_one_of_the_robot_file_does(name, shape, size):
    empty = make_plant(name)
    place = tuple(place_beside(empty).tolist())
    tilted = Obstacle('post', shape, place, (0.3, -0.2, 0.5), size)
    written, put = make_plant(name, (tilted,)), empty
    put.put_obstacle('ball', 'sphere', (0.3, 0.0, 0.0), (5.0, 5.0, 5.0), UPRIGHT)
    put.put_obstacle('ball', shape, size, *tilted.pose)  # it takes another shape and place
    target = commanded(put) + 0.8 * np.eye(len(put.command_names))[0]
    touched = 0
    for _ in range(200):
        written.advance(target)
        put.advance(target)
        touched += put.data.ncon
        np.testing.assert_allclose(commanded(put), commanded(written), atol=1e-3)
    assert touched


def test_one_that_moves_pushes_an_arm():
    plant = make_plant('ur5e')
    start, (place, _) = commanded(plant), plant.tool_pose()
    for step in range(150):
        moved = place + np.array((0.0, 0.25 - 0.002 * step, 0.0))
        plant.put_obstacle('ball', 'sphere', (0.05, 0.0, 0.0), moved, UPRIGHT)
        plant.advance(None)
    assert plant.contacts().number == 1
    assert plant.contacts().between.count('ball') == 1
    assert np.abs(commanded(plant) - start).max() > 1e-3


def test_it_stays_when_the_arm_is_reset():
    plant = make_plant('ur5e')
    plant.put_obstacle('box', 'box', (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), 2.0 * np.array(TILTED))
    plant.reset()
    body = plant.data.body(int(plant.model.geom_bodyid[plant._obstacles._geom(0)]))
    np.testing.assert_allclose(body.xpos, (0.4, 0.5, 0.6))
    np.testing.assert_allclose(body.xquat, TILTED)


@pytest.mark.parametrize('name', ['fetch', 'sawyer'])
def test_places_that_are_empty_change_nothing_to_the_bit(name, monkeypatch):
    used = make_plant(name)
    used.put_obstacle('box', 'box', (0.5, 0.5, 0.5), (0.0, 0.0, 0.0), TILTED)
    used.advance(None)
    used.remove_obstacle('box')
    used.reset()
    with monkeypatch.context() as patched:
        patched.setattr(driven_plant, 'add_slots', lambda spec: None)
        patched.setattr('mher_ros.simulation.obstacle_bodies.SLOTS', 0)
        bare = make_plant(name)
    assert bare.model.nbody == used.model.nbody - SLOTS
    random, touched = np.random.default_rng(0), 0
    for _ in range(30):
        target = random.uniform(-2.0, 2.0, len(used.command_names))
        for _ in range(50):
            used.advance(target)
            bare.advance(target)
            touched += bare.data.ncon
            np.testing.assert_array_equal(used.joint_state(), bare.joint_state())
    assert touched or name == 'sawyer'  # whose links touch nothing else
    assert used.description('any') == bare.description('any')


def test_an_arm_without_forces_shows_it_and_passes_through():
    plant = KinematicPlant(load_robot('ur5e'))
    place = place_beside(plant)
    plant.put_obstacle('post', 'box', (0.1, 0.1, 0.4), place, UPRIGHT)
    assert turn(plant) == pytest.approx(0.8, abs=1e-3)
    assert plant.contacts() is None
    shown = plant.model.geom_rgba[:, 3] > 0.0
    positions = plant.data.geom_xpos[shown]
    assert np.linalg.norm(positions - place, axis=1).min() < 1e-9
    plant.remove_obstacle('post')
    assert (plant.model.geom_rgba[:, 3] > 0.0).sum() == shown.sum() - 1


def test_there_is_room_for_as_many_as_the_filter_avoids():
    plant = make_plant('ur5e')
    for number in range(SLOTS):
        plant.put_obstacle(f'{number}', 'sphere', (0.1, 0.0, 0.0), (3.0, number, 0.0), UPRIGHT)
    with pytest.raises(ValueError, match='at most 16'):
        plant.put_obstacle('one more', 'sphere', (0.1, 0.0, 0.0), (3.0, 0.0, 3.0), UPRIGHT)
    plant.put_obstacle('3', 'sphere', (0.2, 0.0, 0.0), (3.0, 0.0, 3.0), UPRIGHT)
    plant.remove_obstacle('4')
    plant.remove_obstacle('4')
    plant.put_obstacle('one more', 'sphere', (0.1, 0.0, 0.0), (3.0, 0.0, 3.0), UPRIGHT)


@pytest.mark.parametrize(
    'wrong',
    [
        {'shape': 'plane'},
        {'size': (0.1, 0.0, 0.1)},
        {'size': (0.1, 0.1)},
        {'size': (np.nan, 0.1, 0.1)},
        {'size': (11.0, 0.1, 0.1)},
        {'position': (0.0, 0.0, np.inf)},
        {'position': (0.0, 0.0, 101.0)},
        {'orientation': (0.0, 0.0, 0.0, 0.0)},
        {'orientation': (np.nan, 0.0, 0.0, 1.0)},
    ],
)
def test_what_is_no_obstacle_is_refused_and_changes_nothing(wrong):
    given = {'shape': 'box', 'size': (0.1, 0.1, 0.1), 'position': (1.0, 0.0, 0.0)}
    plant = make_plant('ur5e')
    plant.put_obstacle('box', **given, orientation=UPRIGHT)
    mujoco.mj_forward(plant.model, plant.data)
    before = plant.data.geom_xpos.copy(), plant.model.geom_size.copy()
    with pytest.raises(ValueError, match='got'):
        plant.put_obstacle('box', **{**given, 'orientation': UPRIGHT, **wrong})
    mujoco.mj_forward(plant.model, plant.data)
    np.testing.assert_array_equal(before[0], plant.data.geom_xpos)
    np.testing.assert_array_equal(before[1], plant.model.geom_size)


def test_a_task_takes_none():
    with pytest.raises(ValueError, match='fetch_reach takes no obstacles'):
        TaskPlant('fetch_reach').put_obstacle(
            'ball', 'sphere', (0.1, 0.0, 0.0), (1.0, 0.0, 0.0), UPRIGHT
        )
