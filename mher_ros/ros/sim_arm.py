"""Which arm sim_node holds, and how it is commanded."""

from __future__ import annotations

from typing import NamedTuple

from mher_ros.control.robot import load_robot, RobotConfig, Topics
from mher_ros.options import OptionError
from mher_ros.ros.command_input import CommandInput, JointInput, TwistInput
from mher_ros.simulation.arms import ARMS
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.plant import Plant
from mher_ros.simulation.task_plant import TaskPlant
from rclpy.node import Node

__all__ = ['make_arm', 'SimArm']


class SimArm(NamedTuple):
    """A simulated arm and its commands."""

    name: str
    plant: Plant
    input: CommandInput
    topics: Topics


def make_arm(node: Node, task: str, robot: str, interface: str) -> SimArm:
    """Make the arm of ``robot``, or that of ``task`` where ``robot`` is empty."""
    if robot:
        if interface == 'twist':
            raise OptionError(
                f'interface takes auto or joint with robot {robot}, got {interface!r}'
            )
        return _robot_arm(node, load_robot(robot))
    if interface == 'joint' and task in ARMS:
        return _joint_arm(node, task, JointPlant(task), Topics())
    plant = TaskPlant(task)
    fits = ('auto', 'twist') if plant.encoding.is_twist else ('auto', 'joint')
    if interface not in fits:
        raise OptionError(
            f'interface takes {" or ".join(fits)} with task {task}, got {interface!r}'
        )
    if plant.encoding.is_twist:
        return SimArm(task, plant, TwistInput(node, plant), Topics())
    efforts = JointInput(node, plant, plant.joint_names, 'effort')
    return SimArm(task, plant, efforts, Topics())


def _robot_arm(node: Node, robot: RobotConfig) -> SimArm:
    """Make an arm that is found under the topics of the real one."""
    task = robot.simulation_task
    plant = JointPlant(task) if task else KinematicPlant(robot)
    return _joint_arm(node, robot.name, plant, robot.topics)


def _joint_arm(node: Node, name: str, plant: Plant, topics: Topics) -> SimArm:
    return SimArm(
        name, plant, JointInput(node, plant, plant.command_names, 'positions', topics), topics
    )
