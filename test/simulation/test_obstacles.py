"""Obstacles of the robot file stand in the simulated arm's way."""

import dataclasses

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
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
    plant.data.qpos[0] += 0.3
    there, _ = plant.tool_pose()
    plant.data.qpos[:] = start
    return Obstacle('post', 'box', tuple(there), size=(0.1, 0.1, 0.4))


@pytest.mark.parametrize('name', ['fetch', 'panda', 'ur5e'])
def test_an_arm_with_forces_is_held_up_by_an_obstacle(name):
    robot = load_robot(name)
    scene = (beside_the_tool(robot),)
    ends = []
    for obstacles in ((), scene):
        plant = plant_of(dataclasses.replace(robot, scene=obstacles))
        assert plant.data.ncon == 0
        target = plant.data.qpos + 0.4 * np.eye(len(plant.command_names))[0]
        for _ in range(100):
            plant.advance(target)
        ends.append(plant.data.qpos[0] - target[0])
        touched = {
            plant.model.geom(geom).name for geom in np.asarray(plant.data.contact.geom).ravel()
        }
        assert ('post' in touched) == bool(obstacles)
    assert abs(ends[0]) < 1e-3
    assert ends[1] < -0.005


def test_an_arm_with_a_urdf_has_its_masses_and_no_other_joints():
    plant = UrdfPlant(load_robot('panda'))
    arm = ArmModel(load_robot('panda').simulated())
    assert plant.joint_names == arm.joint_names
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
    avoids = CollisionOptions(enabled=True)
    robot = dataclasses.replace(load_robot('fetch'), scene=(post,), collision=avoids)
    plant = JointPlant('fetch_reach', robot.scene)
    arm = ArmModel(robot, plant.description('fetch'))
    assert [part.name for part in arm.collision.parts].count('post') == 1
    assert 'scene' not in [part.name for part in arm.collision.parts]
    kinematic = KinematicPlant(dataclasses.replace(load_robot('ur5e'), scene=(post,)))
    assert kinematic.model.geom('post').size[0] == pytest.approx(0.05)
