"""The arms that come with this package, with the models that their simulations have."""

import dataclasses
import functools

from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import load_robot
from mher_ros.robots.scene import CollisionOptions
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf_writer import urdf_of


@functools.cache
def load_arm(name, avoids_collisions=False):
    """
    Return (robot, its model), as deployment in simulation has them.

    Without collision avoidance, tests of other limits see these alone.
    """
    collision = CollisionOptions(enabled=avoids_collisions)
    robot = dataclasses.replace(load_robot(name), collision=collision)
    if not robot.simulation_task:
        return robot, ArmModel(robot.simulated())
    return robot, ArmModel(robot, model_text(name))


@functools.cache
def model_text(name):
    """Return the URDF that sim_node tells of the arm of a task."""
    plant = JointPlant(load_robot(name).simulation_task)
    return urdf_of(plant.model, name, plant.joint_names, plant.frame)
