"""The simulation of any robot at joint level, with forces and contacts if its model has masses."""

from collections.abc import Mapping
import dataclasses
from types import MappingProxyType

from mher_ros.interface import Vector
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.robot import Robot
from mher_ros.simulation.controlled_arm import ControlledArm
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.plant import JointDrivenPlant
from mher_ros.simulation.urdf_plant import UrdfPlant
from mher_ros.simulation.urdf_scene import MassError


def simulated_robot(
    robot: Robot,
    delay: float = 0.0,
    lag: float = 0.0,
    displaced: Mapping[str, Vector] = MappingProxyType({}),
    randomise: float = 0.0,
) -> ControlledArm:
    """
    Return the simulation of a robot at joint level, behind its controllers.

    It has forces and contacts, unless the URDF has no masses: see ``no_forces``. ``displaced``:
    displacements (3,) [m] of its links by joint, as ``link_errors`` returns them. ``randomise``:
    factor of the ranges that its plant is drawn from at each reset with a seed.
    """
    plant: JointDrivenPlant
    task, ranges = robot.simulation_task, None
    if randomise:
        ranges = robot.randomisation.scaled(randomise)
        if robot.tool_pose.is_tracked:  # its links are those of ``displaced``
            ranges = dataclasses.replace(ranges, link_error=(0.0, 0.0))
    varies = ranges is not None and ranges.payload[1] > 0.0
    try:
        plant = (
            JointPlant(task, robot.scene, displaced=displaced, varies=varies)
            if task
            else UrdfPlant(robot, displaced=displaced, varies=varies)
        )
    except MassError as error:
        plant = KinematicPlant(robot, str(error), displaced)
    arm = ArmModel(robot, plant.description(robot.name))
    return ControlledArm(plant, arm, delay, lag, ranges)
