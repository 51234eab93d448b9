"""Checks whether a policy can move an arm."""

import dataclasses
import hashlib
import json
from pathlib import Path

from mher_ros.errors import MherError
from mher_ros.files import read_at_most
from mher_ros.interface import (
    Field,
    MOST_PREVIOUS,
    previous_fields,
    TaskInterface,
    TrainedArm,
)
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.mesh_file import MAX_MESH_BYTES
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import Robot
import numpy as np

AXES = 'xyz'
MEANINGS = ('tool_displacement', 'target_displacement', 'setpoint_displacement')
POSITION, VELOCITY, TARGET = (
    tuple(f'{what}_{axis}' for axis in AXES)
    for what in ('tool_position', 'tool_velocity', 'tool_target')
)
ABSENT_POSITION, ABSENT_VELOCITY = (
    tuple(f'{side}_finger_{what}' for side in ('right', 'left'))
    for what in ('position', 'velocity')
)
"""Fields that an arm may lack: the observation has the contract's nominal value instead."""
PERIODS = (0.005, 1.0)  # shortest and longest control period that is accepted [s]
JOINTS = 'joint_displacement'  # meaning of actions that move joints
JOINT_POSITION, JOINT_VELOCITY = 'position_', 'velocity_'
"""What the names of observed joints begin with."""
SAMPLES = 8  # postures in which the kinematics of two arms are compared
DIGITS = 12  # of the digest of a robot file
SAME = 0.005  # largest distance of their tools [m]


class FitError(MherError, ValueError):
    """A policy does not fit an arm; the text says what was expected and what was found."""


def check_fit(interface: TaskInterface) -> None:
    """Raise FitError unless a policy with this interface can move some arm to positions."""

    def require(holds: bool, expected: str, got: object) -> None:
        if not holds:
            raise _unfit(interface, expected, got)

    meaning, period, action = interface.action_meaning, interface.control_period, interface.action
    meanings = *MEANINGS, JOINTS
    require(meaning in meanings, f'actions that mean {" or ".join(meanings)}', meaning)
    moves_joints = interface.moves_joints
    angle = interface.orientation_threshold
    require(not angle, 'goals without an orientation (task.goal=position)', f'{angle} rad')
    goal = [(field.name, field.unit) for field in interface.goal]
    is_position = goal == [(name, 'm') for name in POSITION]
    require(is_position, f'a goal of {", ".join(POSITION)} in m', _text(interface.goal))
    known = (*POSITION, *VELOCITY, *ABSENT_POSITION, *ABSENT_VELOCITY)
    previous = previous_fields(action, interface.previous_actions)
    observed = tuple(field for field in interface.observation if field.source == 'action')
    fits = observed == previous and interface.previous_actions <= MOST_PREVIOUS
    most = f'at most {MOST_PREVIOUS} earlier actions, the newest first, each with all entries'
    require(fits, f'an observation of {most}', _text(observed))
    for field in interface.observation:
        if field.source == 'action':
            continue
        name = field.name
        require(bool(np.isfinite(field.nominal)), f'a finite nominal {name}', field.nominal)
        fits = (field.source == 'tracked') == (name in POSITION and interface.is_tracked)
        require(fits, f'{", ".join(POSITION)} of one source, no others tracked', field.source)
        if moves_joints and name.startswith((JOINT_POSITION, JOINT_VELOCITY)):
            units = ('rad', 'm') if name.startswith(JOINT_POSITION) else ('rad/s', 'm/s')
            require(field.unit in units, f'{name} in {" or ".join(units)}', field.unit)
            continue
        require(name in known, f'an observation of any of {", ".join(known)}', name)
        if name in (*VELOCITY, *ABSENT_VELOCITY):
            velocity_unit(field, interface)
        else:
            require(field.unit == 'm', f'{name} in m', field.unit)
    names = tuple(field.name for field in interface.observation)
    is_once = len(set(names)) == len(names)
    require(is_once, 'each field of the observation once', ', '.join(names))
    achieved = tuple(names[index] for index in interface.achieved_index)
    require(
        achieved == POSITION, f'{", ".join(POSITION)} as what is achieved', ', '.join(achieved)
    )
    index = interface.goal_index
    require(not index, 'an observation without the goal', index)
    low, high = PERIODS
    require(low <= period <= high, f'a control period of {low} to {high} s', f'{period} s')
    fits = moves_joints or not interface.is_tracked
    require(fits, 'joint actions with a measured pose of the tool', meaning)
    if moves_joints:
        require(interface.arm is not None, 'joint actions with the arm that they move', 'none')
        for field in action:
            fits = field.unit in ('rad', 'm') and 0.0 < field.scale < np.inf
            got = f'{field.unit} with a scale of {field.scale}'
            require(fits, f'{field.name} in rad or m with a scale above 0', got)
        return
    for name, field in zip(TARGET, action, strict=False):
        require(
            (field.name, field.unit) == (name, 'm') and 0.0 < field.scale < np.inf,
            f'{name} in m with a scale above 0',
            f'{field.name} in {field.unit} with a scale of {field.scale}',
        )
    require(len(action) >= len(TARGET), f'an action of {", ".join(TARGET)}', _text(action))
    for field in action[len(TARGET) :]:
        require(
            field.scale == 0.0,
            f'an action that moves the tool only, after {TARGET[-1]} a scale of 0',
            f'{field.name} with a scale of {field.scale}',
        )


def trained_arm(robot: Robot, arm: ArmModel) -> TrainedArm:
    """Return what the contract of a policy says about the arm of its training."""
    return TrainedArm(robot.name, arm.joint_names, _tool_samples(arm), _digest(robot))


def check_tool_pose(interface: TaskInterface, robot: Robot) -> None:
    """Raise FitError unless the tool's pose comes from where it came from in training."""
    pose, task = robot.tool_pose, interface.task
    if interface.is_tracked and not pose.is_tracked:
        raise FitError(
            f'a robot file with tool_pose.source: topic is expected: this policy for {task} was '
            f'trained with a measured pose of the tool, in the frame {interface.frame}; robot '
            f'{robot.name} computes it from the joints'
        )
    if pose.is_tracked and not interface.is_tracked:
        raise FitError(
            f'a policy that was trained with a measured pose of the tool is expected, as robot '
            f'{robot.name} has tool_pose.source: topic; this one for {task} computes it from the '
            'joints'
        )
    if interface.is_tracked and interface.frame != pose.frame:
        raise FitError(
            f'a policy that was trained in the frame {pose.frame} is expected, as tool_pose.frame '
            f'of robot {robot.name} says; this one was trained in {interface.frame}'
        )


def check_robot(interface: TaskInterface, robot: Robot, output: str) -> None:
    """Raise FitError if a policy for one arm does not fit the joints, scene or output."""
    check_tool_pose(interface, robot)
    trained = interface.arm
    if trained is None or not interface.is_for_one_arm:
        return
    _check_joints(trained, robot.name, robot.joints)
    _check_scene(trained, robot.name, _digest(robot))
    outputs = [name for name, one in OUTPUTS.items() if one.of_joints or not one.message]
    if output not in outputs:
        raise FitError(
            f'a policy for {interface.task} with joint actions, or with obstacles, moves joints: '
            f'an output of {", ".join(outputs)} is expected, got {output}'
        )


def check_kinematics(interface: TaskInterface, arm: ArmModel) -> None:
    """Raise FitError if a policy for one arm was trained on one with other kinematics."""
    trained = interface.arm
    if trained is None or not interface.is_for_one_arm:
        return
    _check_samples(trained, _tool_samples(arm))


def check_same_arm(trained: TrainedArm, here: TrainedArm) -> None:
    """Raise FitError unless joints, kinematics and obstacles are those of training."""
    _check_joints(trained, here.robot, here.joints)
    _check_scene(trained, here.robot, here.scene)
    _check_samples(trained, here.tool_samples)


def _check_joints(trained: TrainedArm, robot: str, joints: tuple[str, ...]) -> None:
    if trained.joints != joints:
        raise FitError(
            f'a policy for the joints of robot {robot} ({", ".join(joints)}) is '
            f'expected; this one was trained on {trained.robot}, with {", ".join(trained.joints)}'
        )


def _check_scene(trained: TrainedArm, robot: str, digest: str) -> None:
    if trained.scene != digest:
        described = {True: 'obstacles', False: 'no obstacles'}
        raise FitError(
            'a policy that was trained with the obstacles in the scene of '
            f'robot {robot} is expected; it was trained on {trained.robot} with other ones '
            f'({described[bool(trained.scene)]} there, {described[bool(digest)]} here)'
        )


def _check_samples(trained: TrainedArm, samples: tuple[tuple[float, ...], ...]) -> None:
    there, here = np.array(trained.tool_samples), np.array(samples)
    far = np.inf
    if there.shape == here.shape:
        far = float(np.linalg.norm(there - here, axis=1).max())
    if far > SAME:
        raise FitError(
            'a policy for an arm with these kinematics is expected; the arm of '
            f'{trained.robot} that it was trained on moves its tool to places that are up to '
            f'{far:.3f} m away'
        )


def _tool_samples(arm: ArmModel) -> tuple[tuple[float, ...], ...]:
    """Return positions of the tool in some fixed postures, to the micrometre."""
    postures = np.random.default_rng(0).uniform(-1.0, 1.0, (SAMPLES, len(arm.state_names)))
    return tuple(tuple(arm.tool_position(one).round(6).tolist()) for one in postures)


def _digest(robot: Robot) -> str:
    """Return the SHA-256 of the obstacles of a robot file; empty: there are none."""
    if not robot.scene:
        return ''
    content = []
    for obstacle in robot.scene:
        values = dataclasses.asdict(obstacle)
        if obstacle.file:  # the same mesh may be elsewhere on another machine
            mesh = read_at_most(Path(obstacle.file), MAX_MESH_BYTES)
            values['file'] = hashlib.sha256(mesh).hexdigest()
        content.append(json.dumps(values))
    content.sort()
    return hashlib.sha256('\n'.join(content).encode()).hexdigest()


def robot_digest(robot: Robot) -> str:
    """Return the first digits of a digest of what a robot file says, wherever it is."""
    content = dataclasses.replace(robot, folder=Path(), description='', scene=())
    return hashlib.sha256(f'{content!r}{_digest(robot)}'.encode()).hexdigest()[:DIGITS]


def velocity_unit(field: Field, interface: TaskInterface) -> float:
    """Return the time [s] by which a velocity is multiplied: 1 for m/s, 0.04 for m/s * 0.04 s."""
    if field.unit == 'm/s':
        return 1.0
    period = interface.control_period
    if field.unit == f'm/s * {period:g} s':
        return period
    raise _unfit(interface, f'{field.name} in m/s or m/s * {period:g} s', field.unit)


def _text(fields: tuple[Field, ...]) -> str:
    return ', '.join(f'{field.name} in {field.unit}' for field in fields)


def _unfit(interface: TaskInterface, expected: str, got: object) -> FitError:
    return FitError(
        f'a policy for {interface.task} cannot move an arm: expected {expected}, got {got}'
    )
