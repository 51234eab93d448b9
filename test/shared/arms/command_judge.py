"""A judge of commands: what a controller is asked for from one command to the next."""

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


class CommandJudge:
    """
    Judges consecutive commands over one command period, however late or early they are.

    It has kinematics of its own. What joint velocities ask of the tool depends on where the arm
    is: a command changes it at once, and so does the motion of the arm from command to command.
    """

    def __init__(self, robot, text, output, limits, arm, rate=100.0):
        self.output, self.period, self.limits, self.arm = output, 1.0 / rate, limits, arm
        chain = read_description(robot, text).chain(arm.base_frame, robot.tool_frame)
        self._chain = Chain(*chain, robot.tool_offset, arm.state_names)
        self._time = None
        self._place = None
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
        count, joints, tool = len(self.arm.joint_names), None, None
        before_here = None
        is_new = gap > RECENT
        if gap > PAUSE or self._time is None:
            self._velocity, self._speeds = np.zeros(3), np.zeros(count)
        if is_new:
            is_position = self.output not in ('twist', 'joint_velocity') and starts is not None
            self._holds = SAGGING if rests else NEAR
            self._begin(command, measured, starts if is_position else [measured])
        others = measured[count:]
        if self.output == 'twist':
            velocity = command.tool_velocity
        elif self.output in ('pose', 'none'):
            tool = command.tool_position
            velocity = (tool - self._place) / self.period
        else:
            joints = command.joint_positions
            if self.output == 'joint_velocity':
                self._joints = measured[:count]
                joints = self._joints + command.joint_velocities * self.period
                before_here = self._velocity_of(self._speeds, measured)
            speeds = (joints - self._joints) / self.period
            before = self._chain.tool(np.concatenate((self._joints, others)))
            tool = self._chain.tool(np.concatenate((joints, others)))
            velocity = (tool - before) / self.period
            self._check_joints(speeds, joints)
            self._speeds, self._joints = speeds, joints
        if before_here is not None:
            turned = (before_here - self._velocity) * min(1.0, self.period / gap)
            self._velocity = before_here - turned
        if self.output != 'joint_velocity' or self.is_honest:
            self._check_tool(velocity)
        self._time, self._place, self._velocity = now, tool, velocity

    def _begin(self, command, measured, starts):
        """Begin at the last set-point if the arm holds it, or at one of ``starts``."""
        count, period = len(self.arm.joint_names), self.period
        places, joints = [self._chain.tool(one) for one in starts], [one[:count] for one in starts]
        if self._place is not None and self.output != 'none':
            if np.linalg.norm(self._place - self._chain.tool(measured)) <= self._holds[1]:
                places.append(self._place)
            joint = self._holds[0]
            if self._joints is not None and np.abs(self._joints - measured[:count]).max() <= joint:
                joints.append(self._joints)
        self._joints = None
        if command.joint_positions is None:
            assert places, 'a motion begins although it is not known where the arm is'
            steps = [np.linalg.norm(one - command.tool_position) for one in places]
            most = self.limits.acceleration * period**2 * (1.0 + ROUNDING)
            self._place = places[-1] if steps[-1] <= most else places[int(np.argmin(steps))]
            return
        assert joints, 'a motion begins although it is not known where the arm is'

        def step(start):
            """Return the step from there, relative to those that the accelerations allow."""
            moved = np.abs(command.joint_positions - start) / self.arm.acceleration_limits
            tools = [np.concatenate((one, measured[count:])) for one in (start, wanted)]
            tool = np.linalg.norm(self._chain.tool(tools[1]) - self._chain.tool(tools[0]))
            return max(moved.max(), tool / self.limits.acceleration) / period**2

        wanted = command.joint_positions
        # From the last set-point, if it can be that: two starts differ in the velocity after them.
        self._joints = joints[-1] if step(joints[-1]) <= 1.0 + ROUNDING else min(joints, key=step)

    def _velocity_of(self, speeds, positions):
        """Return the velocity (3,) that joint velocities (k,) give the tool."""
        moved = positions.copy()
        moved[: len(speeds)] += speeds * self.period
        return (self._chain.tool(moved) - self._chain.tool(positions)) / self.period

    def _check_tool(self, velocity):
        self._check('speed', np.linalg.norm(velocity), self.limits.speed)
        change = np.linalg.norm(velocity - self._velocity) / self.period
        self._check('acceleration', change, self.limits.acceleration)

    def _check_joints(self, speeds, joints):
        self._check('joint speed', (np.abs(speeds) / self.arm.velocity_limits).max(), 1.0)
        change = np.abs(speeds - self._speeds) / self.period / self.arm.acceleration_limits
        self._check('joint change', change.max(), 1.0)
        if self.output != 'joint_velocity':
            low, high = self.arm.lower, self.arm.upper
            assert (joints >= np.minimum(low, self._joints) - ROUNDING).all()
            assert (joints <= np.maximum(high, self._joints) + ROUNDING).all()

    def _check(self, what, value, most):
        self.worst[what] = max(self.worst[what], value)
        assert value <= most * (1.0 + ROUNDING), f'{what} {value} above {most}'


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
