"""The arms that come with this package, with the models that their simulations have."""

import functools

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.robot import load_robot, robot_names
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.urdf import urdf_of
import pytest


@functools.cache
def load_arm(name):
    """Return (robot, its model), as deployment in simulation has them."""
    robot = load_robot(name)
    if not robot.simulation_task:
        return robot, ArmModel(robot.simulated())
    plant = JointPlant(robot.simulation_task)
    return robot, ArmModel(robot, urdf_of(plant.model, name, plant.joint_names, plant.frame))


@pytest.fixture(params=robot_names())
def any_arm(request):
    """Return (robot, its model) of each arm in turn."""
    return load_arm(request.param)


@pytest.fixture
def arm():
    """Return a function that gives (robot, its model) by name."""
    return load_arm
