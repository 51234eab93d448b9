"""Obstacles of the robot file stand in the simulated arm's way."""

import dataclasses
import itertools

from mher_ros.errors import MherError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.collision_model import PairDistances
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import Obstacle
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.simulation.urdf_writer import link_name
import mujoco
import numpy as np
import pytest


def plant_of(robot):
    if robot.simulation_task:
        return JointPlant(robot.simulation_task, robot.scene)
    return UrdfPlant(robot)


def beside_the_tool(robot):
    """Return a post beside the tool, where the first joint moves it to."""
    plant = plant_of(robot)
    start = plant.data.qpos.copy()
    plant.data.qpos[0] += 0.7
    there, _ = plant.tool_pose()
    plant.data.qpos[:] = start
    return Obstacle('post', 'box', tuple(there), size=(0.06, 0.06, 0.4))


@pytest.mark.parametrize('name', ['fetch', 'panda', 'ur5e'])
def test_an_arm_with_forces_is_held_up_by_an_obstacle(name):
    robot = load_robot(name)
    scene = (beside_the_tool(robot),)
    ends = []
    for obstacles in ((), scene):
        plant = plant_of(dataclasses.replace(robot, scene=obstacles))
        assert plant.data.ncon == 0
        target = plant.data.qpos + 0.8 * np.eye(len(plant.command_names))[0]
        for _ in range(200):
            plant.advance(target)
        ends.append(plant.data.qpos[0] - target[0])
        touched = {
            plant.model.geom(geom).name for geom in np.asarray(plant.data.contact.geom).ravel()
        }
        assert ('post' in touched) == bool(obstacles)
    assert abs(ends[0]) < 1e-3
    assert ends[1] < -0.005


@pytest.mark.parametrize('name', ['fetch', 'panda', 'sawyer', 'ur5e'])
def test_every_link_that_is_kept_away_from_obstacles_touches_them(name):
    robot = load_robot(name)
    plant = plant_of(robot)
    arm = ArmModel(robot, plant.description(name))
    model, links = arm.collision, set()
    query = PairDistances(model)
    query.move(plant.data.qpos)
    balls = []
    for part, centre in zip(model.parts, model.centres, strict=True):
        if part.body:
            links.add(part.name)
            turned = query.data.xmat[part.body].reshape(3, 3) @ centre
            there = tuple((query.data.xpos[part.body] + turned).tolist())
            balls.append(Obstacle(f'ball{len(balls)}', 'sphere', there, size=(0.03, 0.0, 0.0)))
    plant = plant_of(dataclasses.replace(robot, scene=tuple(balls)))
    touched = set()
    for one, other in plant.data.contact.geom:
        bodies = {link_name(plant.model, plant.model.geom_bodyid[geom]) for geom in (one, other)}
        if 'scene' in bodies:
            touched |= bodies - {'scene'}
    assert touched >= links


@pytest.mark.parametrize('name', ['fetch', 'panda', 'ur5e'])
def test_every_contact_in_the_simulation_is_one_of_the_collision_model(name):
    robot = load_robot(name)
    plant = plant_of(robot)
    arm = ArmModel(robot, plant.description(name))
    model, data = plant.model, plant.data
    query, random, seen = PairDistances(arm.collision), np.random.default_rng(0), 0
    low, high = np.clip((arm.lower, arm.upper), -3.0, 3.0)
    for posture in random.uniform(low, high, (1500, len(low))):
        data.qpos[:] = posture
        mujoco.mj_forward(model, data)
        query.move(posture)
        near = np.flatnonzero(query.evaluate(np.arange(len(arm.collision.pairs)), 0.01) <= 0.0)
        close = {frozenset(arm.collision.names(pair)) for pair in near.tolist()}
        for contact in data.contact:
            bodies = model.geom_bodyid[contact.geom]
            # Below the floor, which is thin in the model, a link touches it no longer.
            if -0.01 < contact.dist < -1e-4:
                names = (link_name(model, body).removesuffix('_fixed') for body in bodies)
                seen += 1
                assert frozenset(names) in close
    assert seen > 20


def test_a_floor_is_solid_beyond_what_is_shown_of_it():
    robot = load_robot('fetch')
    arm = ArmModel(robot, plant_of(robot).description('fetch'))
    [floor] = [part for part in arm.collision.parts if part.name == 'world']
    for place in ((0.8, -1.0, -0.001), (-1.0, 0.7, -0.001), (2.5, 2.0, -0.001)):
        assert floor.solid.contains(np.array(place))
    assert not floor.solid.contains(np.array((0.8, 0.7, 0.001)))


@pytest.mark.parametrize('name', ['fetch', 'ur5e'])
def test_a_scene_of_planes_alone_is_simulated(name):
    floor = Obstacle('floor', 'plane', (0.0, 0.0, -1.0))
    wall = Obstacle('wall', 'plane', (-2.0, 0.0, 0.0), (0.0, 1.5708, 0.0))
    plant = plant_of(dataclasses.replace(load_robot(name), scene=(floor, wall)))
    for _ in range(5):
        plant.advance(None)
    assert {'floor', 'wall'} <= {plant.model.geom(n).name for n in range(plant.model.ngeom)}
    assert plant.contacts().number == 0


def test_an_arm_with_a_urdf_has_its_masses():
    plant = UrdfPlant(load_robot('panda'))
    link = plant.model.body('panda_link2')
    assert link.mass[0] == pytest.approx(0.646926)
    tensor = np.zeros(9)
    mujoco.mju_quat2Mat(tensor, plant.model.body('panda_link2').iquat)
    turn = tensor.reshape(3, 3)
    inertia = turn @ np.diag(link.inertia) @ turn.T
    assert inertia[0, 0] == pytest.approx(7.9620e-03, rel=1e-3)
    assert inertia[0, 1] == pytest.approx(-3.9250e-03, rel=1e-3)


def test_obstacles_are_shown_and_counted_once():
    post = Obstacle('post', 'cylinder', (1.3, 0.2, 0.6), size=(0.05, 0.4, 0.0))
    robot = dataclasses.replace(load_robot('fetch'), scene=(post,))
    plant = JointPlant('fetch_reach', robot.scene)
    arm = ArmModel(robot, plant.description('fetch'))
    assert [part.name for part in arm.collision.parts].count('post') == 1
    assert 'scene' not in [part.name for part in arm.collision.parts]
    kinematic = KinematicPlant(dataclasses.replace(load_robot('ur5e'), scene=(post,)))
    assert kinematic.model.geom('post').size[0] == pytest.approx(0.05)


def write_post(folder):
    """Write a post with edges of 60, 60 and 400 mm as a mesh."""
    corners = itertools.product((-30, 30), (-30, 30), (-200, 200))
    path = folder / 'post.obj'
    path.write_text(''.join(f'v {x} {y} {z}\n' for x, y, z in corners))
    return str(path)


@pytest.mark.parametrize('name', ['fetch', 'panda'])
def test_a_mesh_stands_where_a_box_of_its_size_would(name, tmp_path):
    robot = load_robot(name)
    box = dataclasses.replace(beside_the_tool(robot), rpy=(0.1, 0.2, 0.3))
    mesh = dataclasses.replace(
        box, shape='mesh', size=(0.0, 0.0, 0.0), file=write_post(tmp_path), scale=(1e-3,) * 3
    )
    ends = []
    for obstacle in (box, mesh):
        plant = plant_of(dataclasses.replace(robot, scene=(obstacle,)))
        target = plant.data.qpos + 0.8 * np.eye(len(plant.command_names))[0]
        for _ in range(200):
            plant.advance(target)
        assert plant.data.ncon
        ends.append(plant.data.qpos.copy())
    assert abs(ends[0] - target).max() > 0.005
    np.testing.assert_allclose(*ends, atol=0.01)
    robot = dataclasses.replace(robot, scene=(mesh,))
    plant = plant_of(robot)
    arm = ArmModel(robot, plant.description(name))
    [part] = [part for part in arm.collision.parts if part.name == 'post']
    geom = plant.data.geom('post')
    mesh = plant.model.geom('post').dataid[0]
    first, count = plant.model.mesh_vertadr[mesh], plant.model.mesh_vertnum[mesh]
    vertices = plant.model.mesh_vert[first : first + count] @ geom.xmat.reshape(3, 3).T + geom.xpos
    assert len(part.solid.vertices) == count == 8
    for corner in part.solid.vertices:
        assert np.linalg.norm(vertices - corner, axis=1).min() < 1e-6


def test_a_mesh_that_is_too_large_or_no_mesh_is_named(tmp_path):
    robot = load_robot('ur5e').simulated()
    path = write_post(tmp_path)
    broken = tmp_path / 'broken.stl'
    broken.write_text('solid')
    for file, words in ((path, 'scale'), (str(broken), 'broken.stl')):
        obstacle = Obstacle('shelf', 'mesh', (1.0, 0.0, 0.0), file=file)
        with pytest.raises(MherError, match=rf'scene\.shelf.*{words}'):
            _ = ArmModel(dataclasses.replace(robot, scene=(obstacle,))).collision


def test_a_flat_mesh_is_an_obstacle(tmp_path):
    path = tmp_path / 'door.obj'
    path.write_text('v 0 -1 -1\nv 0 -1 1\nv 0 1 -1\nv 0 1 1\n')
    door = Obstacle('door', 'mesh', (0.7, 0.0, 0.5), file=str(path))
    robot = dataclasses.replace(load_robot('panda'), scene=(door,))
    plant = plant_of(robot)
    target = plant.data.qpos + (0.0, 1.2, 0.0, 1.0, 0.0, 0.0, 0.0)
    for _ in range(200):
        plant.advance(target)
    assert plant.tool_pose()[0][0] < 0.72
    model = ArmModel(robot.simulated()).collision
    assert any('door' in model.names(pair) for pair in range(len(model.pairs)))
