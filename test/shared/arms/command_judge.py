"""A judge of commands: what a controller is asked for from one command to the next."""

from typing import Any, NamedTuple

from mher_ros.robots.arm_model import read_description
import numpy as np

PAUSE = 0.1
"""Time without a command after which an arm is at rest [s]."""
RECENT = 1.0
"""Age of the last command beyond which a motion may begin where the arm is, at rest [s]."""
NEAR, SAGGING = (0.03, 0.02), (0.1, 0.05)
"""
How far an arm may be from its last set-point to still hold it: a joint, the tool [rad, m].

The latter if it has not moved since it came to rest.
"""
ROUNDING = 1e-6


class Following(NamedTuple):
    """What a judge knows after a command: a motion that the arm may be carrying out."""

    place: Any = None
    """Last set-point of the tool (3,) [m]; None if it has none."""
    joints: Any = None
    """Last set-point of the joints (k,) [rad or m]; None if they have none."""
    velocity: Any = np.zeros(3)
    """Last commanded velocity of the tool [m/s]."""
    speeds: Any = 0.0
    """Last commanded velocities of the joints (k,) [rad/s or m/s]."""

    def same_as(self, other):
        return all(np.array_equal(mine, its) for mine, its in zip(self, other, strict=True))


class CommandJudge:
    """
    Judges consecutive commands over one command period, however late or early they are.

    It has kinematics of its own. What joint velocities ask of the tool depends on where the arm
    is: a command changes it at once, and so does the motion of the arm from command to command.

    A motion may begin at several places, such as the last set-point and the arm that holds it
    nearby. The judge follows all of them: one must agree with all commands.
    """

    def __init__(self, robot, text, output, limits, arm, rate=100.0):
        self.output, self.period, self.limits, self.arm = output, 1.0 / rate, limits, arm
        chain = read_description(robot, text).chain(arm.base_frame, robot.tool_frame)
        self._chain = Chain(*chain, robot.tool_offset, arm.state_names)
        self._time = None
        self._motions = [Following()]
        self.is_honest = True
        """Whether joint states tell where the arm is."""
        self.worst = dict.fromkeys(('speed', 'acceleration', 'joint speed', 'joint change'), 0.0)

    def take(self, now, command, measured, starts=None, rests=False):
        """
        Judge a command at a time; ``measured`` (n,): where the arm was told to be.

        ``starts``: joint positions (n,) where a motion may begin, if not at the last set-point.
        ``rests``: whether the arm has not moved since it came to rest after the last command.
        """
        gap = np.inf if self._time is None else now - self._time
        self._time = now
        motions = self._motions
        if gap > PAUSE:
            motions = [Following(one.place, one.joints) for one in motions]
        if gap > RECENT and self.output not in ('twist', 'joint_velocity'):
            held = self._held(motions, measured, SAGGING if rests else NEAR)
            motions = held + self._at([measured] if starts is None else starts)
            assert motions, 'a motion begins although it is not known where the arm is'
        judged = [self._judge(one, command, measured, gap) for one in motions]
        excess = [max(values.values()) for _, values in judged]
        least = judged[int(np.argmin(excess))][1]
        self.worst = {name: max(value, least[name]) for name, value in self.worst.items()}
        assert min(excess) <= 1.0 + ROUNDING, f'in parts of the limits: {least}'
        self._motions = []
        for (motion, _), value in zip(judged, excess, strict=True):
            known = any(motion.same_as(one) for one in self._motions)
            if value <= 1.0 + ROUNDING and not known:
                self._motions.append(motion)

    def _at(self, starts):
        """Return the beginnings at rest at joint positions (n,)."""
        count = len(self.arm.joint_names)
        different = {one.tobytes(): one for one in starts}.values()
        return [Following(self._chain.tool(one), one[:count]) for one in different]

    def _held(self, motions, measured, near):
        """Return the motions whose last set-point the arm at joint positions (n,) holds."""
        if self.output == 'none':
            return []
        tool, joint, held = self._chain.tool(measured), measured[: len(self.arm.joint_names)], []
        for one in motions:
            if one.place is None or np.linalg.norm(one.place - tool) > near[1]:
                continue
            if one.joints is None or np.abs(one.joints - joint).max() <= near[0]:
                held.append(one)
        return held

    def _judge(self, last, command, measured, gap):
        """Return the motion after a command, and what it asks for in parts of the limits."""
        limits, arm, values = self.limits, self.arm, dict.fromkeys(self.worst, 0.0)
        count, before = len(arm.joint_names), last.velocity
        others, joints, speeds, tool = measured[count:], None, 0.0, None
        if self.output == 'twist':
            velocity = command.tool_velocity
        elif self.output in ('pose', 'none'):
            tool = command.tool_position
            velocity = (tool - last.place) / self.period
        else:
            joints, old = command.joint_positions, last.joints
            if self.output == 'joint_velocity':
                old = measured[:count]
                joints = old + command.joint_velocities * self.period
                here = self._velocity_of(last.speeds, measured)
                before = here - (here - before) * min(1.0, self.period / gap)
            speeds = (joints - old) / self.period
            tool = self._chain.tool(np.concatenate((joints, others)))
            velocity = (tool - self._chain.tool(np.concatenate((old, others)))) / self.period
            values['joint speed'] = (np.abs(speeds) / arm.velocity_limits).max()
            change = np.abs(speeds - last.speeds) / self.period / arm.acceleration_limits
            values['joint change'] = change.max()
            if self.output != 'joint_velocity':
                low, high = np.minimum(arm.lower, old), np.maximum(arm.upper, old)
                if (joints < low - ROUNDING).any() or (joints > high + ROUNDING).any():
                    values['joint speed'] = np.inf
        if self.output != 'joint_velocity' or self.is_honest:
            values['speed'] = np.linalg.norm(velocity) / limits.speed
            change = np.linalg.norm(velocity - before) / self.period
            values['acceleration'] = change / limits.acceleration
        return Following(tool, joints, velocity, speeds), values

    def _velocity_of(self, speeds, positions):
        """Return the velocity (3,) that joint velocities (k,) give the tool."""
        moved = positions.copy()
        moved[: len(self.arm.joint_names)] += speeds * self.period
        return (self._chain.tool(moved) - self._chain.tool(positions)) / self.period


class Chain:
    """Forward kinematics in numpy, from the joints of a description."""

    def __init__(self, start, joints, offset, names):
        self._start, self._offset = matrix(*start), np.array(offset)
        self._links = [
            (matrix(*joint.origin), joint.kind, np.array(joint.axis), joint.name)
            for joint in joints
        ]
        self._index = {name: index for index, name in enumerate(names)}

    def tool(self, positions):
        """Return where the tool is (3,) [m] for joints (n,) in the order of the names."""
        pose = self._start
        for origin, kind, axis, name in self._links:
            pose = pose @ origin
            if kind != 'fixed':
                pose = pose @ moved(kind, axis, positions[self._index[name]])
        return pose[:3, :3] @ self._offset + pose[:3, 3]


def matrix(position, orientation):
    w, x, y, z = orientation
    pose = np.eye(4)
    pose[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    pose[:3, 3] = position
    return pose


def moved(kind, axis, by):
    pose = np.eye(4)
    if kind == 'slide':
        pose[:3, 3] = axis * by
        return pose
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    pose[:3, :3] += np.sin(by) * cross + (1.0 - np.cos(by)) * cross @ cross
    return pose
