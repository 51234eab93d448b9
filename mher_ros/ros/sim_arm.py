"""Which arm sim_node holds, and how it is commanded."""

from __future__ import annotations

from typing import NamedTuple

from mher_ros.control.arm_model import ArmModel
from mher_ros.control.robot import load_robot, Topics
from mher_ros.options import OptionError
from mher_ros.ros.command_input import CommandInput, JointInput, TwistInput
from mher_ros.ros.robot_input import RobotInput
from mher_ros.ros.sim_options import SimOptions
from mher_ros.simulation.arms import ARMS
from mher_ros.simulation.controlled_arm import ControlledArm
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


def make_arm(node: Node, options: SimOptions) -> SimArm:
    """Make the arm of ``robot``, or that of ``task`` where ``robot`` is empty."""
    task, interface = options.task, options.interface
    if options.robot:
        return _robot_arm(node, options)
    for name in ('delay', 'lag'):
        if getattr(options, name):
            raise OptionError(
                f'{name} must be 0 without a robot, got {getattr(options, name)}: the arms of '
                'tasks answer at once'
            )
    if interface == 'joint' and task in ARMS:
        plant = JointPlant(task)
        positions = JointInput(node, plant, plant.command_names, 'positions')
        return SimArm(task, plant, positions, Topics())
    return _task_arm(node, task, interface)


def _task_arm(node: Node, task: str, interface: str) -> SimArm:
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


def _robot_arm(node: Node, options: SimOptions) -> SimArm:
    """Make an arm that is found under the topics of the real one."""
    if options.interface == 'twist':
        raise OptionError(
            f'interface takes auto or joint with robot {options.robot}, got '
            f'{options.interface!r}; a robot takes twists in any case'
        )
    robot = load_robot(options.robot)
    task = robot.simulation_task
    plant = JointPlant(task) if task else KinematicPlant(robot)
    model = ArmModel(robot, plant.description(robot.name))
    arm = ControlledArm(plant, model, options.delay, options.lag)
    output = robot.output if options.output == 'robot' else options.output
    return SimArm(robot.name, arm, RobotInput(node, arm, robot.topics, output), robot.topics)
