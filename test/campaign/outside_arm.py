"""
An arm as somebody outside of mher_ros knows it: kinematics and limits from the text of a URDF.

Nothing of mher_ros is imported here: what judges commands must not share a mistake with what makes
them.
"""

import dataclasses
from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import yaml

ROBOTS = Path(__file__).parents[2] / 'config' / 'robots'
PYTHON = 'python://'
DAMPING = 1e-3
"""Of the inverse of the Jacobian [m]."""


@dataclasses.dataclass(frozen=True)
class Link:
    """One joint of the chain: a fixed placement, then a motion along or about an axis."""

    name: str
    kind: str
    rotation: np.ndarray
    translation: np.ndarray
    axis: np.ndarray


class OutsideArm:
    """The chain of joints from base to tool, for many joint positions at once."""

    def __init__(self, text, base, tool, joints):
        """Read URDF ``text``; ``joints`` (k) are all that move between ``base`` and ``tool``."""
        top = ElementTree.fromstring(text)
        by_child = {joint.find('child').get('link'): joint for joint in top.findall('joint')}
        chain, link = [], tool
        while link != base:
            chain.append(by_child[link])
            link = chain[-1].find('parent').get('link')
        self._chain = [_read_joint(joint) for joint in reversed(chain)]
        moving = [link.name for link in self._chain if link.kind != 'fixed']
        if sorted(moving) != sorted(joints):
            raise ValueError(f'joints {joints} are expected to move {tool}, got {moving}')
        self.joints = tuple(joints)
        limits = [
            _limits(joint) for name in joints for joint in chain if joint.get('name') == name
        ]
        self.lower, self.upper, self.velocity = np.array(limits).T

    def tool(self, positions):
        """Return the tool's place (N, 3) [m] for joints (N, k)."""
        return self._frames(positions)[1]

    def jacobian(self, positions):
        """Return (N, 6, k): velocity [m/s] and angular velocity [rad/s] of the tool."""
        rotation, tool, axes = self._frames(positions)
        result = np.zeros((len(tool), 6, len(self.joints)))
        for name, (kind, axis, place) in axes.items():
            column = self.joints.index(name)
            if kind == 'prismatic':
                result[:, :3, column] = axis
            else:
                result[:, :3, column] = np.cross(axis, tool - place)
                result[:, 3:, column] = axis
        return result

    def joint_velocities(self, position, tool_velocity):
        """Return velocities (k,) that move the tool so (3,) without turning it, nearly."""
        jacobian = self.jacobian(position[None])[0]
        wanted = np.concatenate((tool_velocity, np.zeros(3)))
        square = jacobian @ jacobian.T + DAMPING**2 * np.eye(6)
        return jacobian.T @ np.linalg.solve(square, wanted)

    def _frames(self, positions):
        """Return the tool's rotation (N, 3, 3) and place (N, 3), and each joint's axis."""
        positions = np.asarray(positions, float)
        count = len(positions)
        rotation = np.broadcast_to(np.eye(3), (count, 3, 3))
        place, axes = np.zeros((count, 3)), {}
        for link in self._chain:
            place = place + rotation @ link.translation
            rotation = rotation @ link.rotation
            if link.kind == 'fixed':
                continue
            axes[link.name] = link.kind, rotation @ link.axis, place
            value = positions[:, self.joints.index(link.name)]
            if link.kind == 'prismatic':
                place = place + value[:, None] * (rotation @ link.axis)
            else:
                rotation = rotation @ _turned(link.axis, value)
        return rotation, place, axes


@dataclasses.dataclass(frozen=True)
class OutsideRobot:
    """What the campaign takes of a robot's file."""

    arm: OutsideArm
    model: str
    """Text of the URDF."""
    home: np.ndarray
    origin: np.ndarray
    """Middle of the goals [m]."""
    frame: str
    rate: float
    speed: float
    acceleration: float
    joint_acceleration: dict
    """Where the file gives one, by joint [rad/s^2 or m/s^2]."""
    topics: dict


def read_robot(name):
    """Read a robot's file and the URDF that its simulation takes."""
    content = yaml.safe_load((ROBOTS / f'{name}.yaml').read_text())
    model = _model_file(content['simulation_model']).read_text()
    joints = content['joints']
    return OutsideRobot(
        arm=OutsideArm(model, content['base_frame'], content['tool_frame'], joints),
        model=model,
        home=np.array([content['home'][joint] for joint in joints]),
        origin=np.array(content['workspace']['origin']),
        frame=content['base_frame'],
        rate=float(content['command_rate']),
        speed=float(content.get('speed', 0.25)),
        acceleration=float(content.get('acceleration', 1.0)),
        joint_acceleration={
            joint: limits['acceleration']
            for joint, limits in content.get('joint_limits', {}).items()
            if 'acceleration' in limits
        },
        topics={**DEFAULT_TOPICS, **content.get('topics', {})},
    )


DEFAULT_TOPICS = {
    'twist': 'twist_command',
    'pose': 'pose_command',
    'joint_trajectory': 'joint_trajectory',
    'joint_position': 'commands',
    'joint_velocity': 'commands',
}


def _model_file(address):
    project, _, rest = address.removeprefix(PYTHON).partition('/')
    (found,) = (file for file in distribution(project).files if str(file).endswith(rest))
    return Path(str(found.locate()))


def _read_joint(joint):
    origin = joint.find('origin')
    given = {} if origin is None else origin.attrib
    axis = joint.find('axis')
    direction = _numbers('1 0 0' if axis is None else axis.get('xyz'))
    return Link(
        joint.get('name'),
        joint.get('type'),
        _rpy(*_numbers(given.get('rpy', '0 0 0'))),
        _numbers(given.get('xyz', '0 0 0')),
        direction / np.linalg.norm(direction),
    )


def _limits(joint):
    limit = joint.find('limit')
    if joint.get('type') == 'continuous':
        return -np.inf, np.inf, float(limit.get('velocity'))
    return tuple(float(limit.get(key, 0.0)) for key in ('lower', 'upper', 'velocity'))


def _numbers(text):
    return np.array([float(word) for word in text.split()])


def _rpy(roll, pitch, yaw):
    x, y, z = np.eye(3)
    turn = [
        _turned(axis, np.array([angle]))[0] for axis, angle in ((z, yaw), (y, pitch), (x, roll))
    ]
    return turn[0] @ turn[1] @ turn[2]


def _turned(axis, angles):
    """Return the rotations (N, 3, 3) about an axis (3,) by angles (N,) [rad]."""
    x, y, z = axis
    cross = np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))
    sine, cosine = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    return np.eye(3) + sine * cross + (1.0 - cosine) * (cross @ cross)
