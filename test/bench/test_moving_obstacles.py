"""The benchmark of obstacles that move, with few goals; and its judge, with known motions."""

import dataclasses

from mher_ros.bench import moving_obstacles
from mher_ros.control.goal_controller import GoalController
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions
from mher_ros.robots.workspace import place_workspace, Workspace
from mher_ros.tasks import make
import mujoco
import numpy as np
import pytest


@pytest.mark.slow
def test_an_arm_that_avoids_an_obstacle_does_not_hit_it():
    found = moving_obstacles.measure(robot='ur5e', goals=15, output='robot', seed=1)
    assert found.figures['arm_hit'] == 0
    assert found.figures['goals'] == 15
    assert found.figures['reached'] > 5
    off = found.samples['off']
    assert off['goals'] == 15
    assert off['arm_hit'] + off['obstacle_hit'] > 0


def make_world(enabled=False):
    space = Workspace(np.array((1.0, 1.0, 1.0)), np.array((1.2, 1.2, 1.2)))
    avoids = CollisionOptions(enabled=enabled)
    robot = dataclasses.replace(load_robot('ur5e'), collision=avoids)
    return moving_obstacles._World(robot, 'joint_position', np.random.default_rng(0), space)


def place_ball(world, offset):
    """Put a ball of 5 cm beside the tool."""
    ball = world._obstacle
    ball.shape, ball.size = 'sphere', (0.05, 0.0, 0.0)
    ball.place = world.tool_position() + offset
    ball.velocity = np.zeros(3)
    world._put(ball)


def turn(world, by, steps=100):
    """Turn the first joint, which moves the tool along +y."""
    plant = world._plant
    target = world.positions() + by * np.eye(6)[0]
    for _ in range(steps):
        plant.advance(target)


def test_an_arm_that_moves_into_an_obstacle_hits_it_once():
    world = make_world()
    place_ball(world, (0.0, 0.2, 0.0))
    turn(world, 0.6)
    [hit] = world.hits
    assert hit.speed > 0.1
    assert hit.link.startswith('wrist')


def test_a_resting_arm_is_hit_by_an_obstacle():
    world = make_world()
    start, ball = world.tool_position(), world._obstacle
    place_ball(world, (0.0, 0.2, 0.0))
    for step in range(100):
        ball.place = start + np.array((0.0, 0.2 - 0.002 * step, 0.0))
        world._put(ball)
        turn(world, 0.0, steps=1)
    [hit] = world.hits
    assert abs(hit.speed) < moving_obstacles.APPROACH


def test_contacts_of_the_arm_with_itself_are_no_hits():
    world = make_world()
    joint = int(world.model.joint('elbow_joint').qposadr[0])
    world.data.qpos[joint] = 3.1
    mujoco.mj_step(world.model, world.data)
    assert world.data.ncon
    world._look()
    assert world.hits == []


def test_obstacles_keep_their_speed_and_are_the_same_for_the_same_seed():
    space = Workspace(np.zeros(3), np.full(3, 0.3))
    one, other = (
        moving_obstacles.MovingObstacle(np.random.default_rng(3), space) for _ in range(2)
    )
    low, high = moving_obstacles.SPEEDS
    around = moving_obstacles.AROUND + 0.01
    seen = []
    for _ in range(3000):
        before = one.place
        one.move(0.01)
        other.move(0.01)
        speed = np.linalg.norm(one.place - before) / 0.01
        assert low - 1e-9 <= speed <= high + 1e-9
        assert (one.place > space.low - around).all()
        assert (one.place < space.high + around).all()
        np.testing.assert_array_equal(one.place, other.place)
        seen.append(one.place)
    assert np.ptp(seen, axis=0).min() > 0.2


def test_the_command_path_learns_of_a_place_later():
    world = make_world(enabled=True)
    task, robot = make('fetch_reach'), load_robot('ur5e')
    space = place_workspace(task.interface, robot)
    path = GoalController(None, task.interface, world.arm, space, 'joint_position').path
    world.let_avoid(path)
    ages = []
    for _ in range(100):
        world.step(path)
        if world.slots.is_used.any():
            ages.append(world.now - world.slots.known_at.max())
    late, update = moving_obstacles.LATE, moving_obstacles.UPDATE
    assert len(ages) > 80
    assert late - 1e-9 <= min(ages)
    assert max(ages) <= late + update + 0.021
    assert max(ages) - min(ages) > 0.5 * update
