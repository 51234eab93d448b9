"""A simulated tracker: it measures the pose of a marker on the tool, as a camera does."""

from collections import deque
from collections.abc import Mapping
import copy
import dataclasses

from mher_ros.interface import Vector
from mher_ros.options import describe, option, option_text, OptionError
from mher_ros.robots.arm_model import ArmModel
from mher_ros.robots.description import after, inverse, Pose, pose_of
from mher_ros.robots.robot import Robot
from mher_ros.robots.workspace import reach_workspace
import mujoco
import numpy as np

NONE = (0.0, 0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class TrackerOptions:
    """What a simulated arm with a measured pose of its tool differs in from its model."""

    camera_turn: tuple[float, ...] = option(
        NONE,
        'roll, pitch and yaw of the frame of the measured pose in the base frame, about the '
        'centre of the workspace [deg]',
        low=-360.0,
        high=360.0,
    )
    camera_offset: tuple[float, ...] = option(
        NONE, 'displacement of that frame, in the base frame [m]', low=-10.0, high=10.0
    )
    tool_offset_error: tuple[float, ...] = option(
        NONE, 'place of the marker in the frame of the tool [m]', low=-1.0, high=1.0
    )
    link_error: float = option(
        0.0,
        'length by which each link of the arm is displaced, in a random direction [m]; filter '
        'and baselines do not know it',
        low=0.0,
        high=0.1,
    )
    arm_seed: int = option(0, 'seed of the directions of link_error', low=0)
    noise: float = option(
        0.0, 'standard deviation of the measured position on each axis [m]', low=0.0, high=0.1
    )
    delay: float = option(0.0, 'age of the measured pose [s]', low=0.0, high=1.0)


def tracker_text(robot: Robot, options: TrackerOptions) -> str:
    """Return what differs from the model as a text; empty: the pose is not measured."""
    if not robot.tool_pose.is_tracked:
        return ''
    usual = TrackerOptions()
    changed = [
        f'{key}={option_text(value)}'
        for key, value, _ in describe(options)
        if value != getattr(usual, key)
    ]
    return ' '.join(changed) or 'nothing'


def link_errors(robot: Robot, options: TrackerOptions) -> Mapping[str, Vector]:
    """Return displacements (3,) [m] of the links behind the commanded joints, by joint."""
    if not options.link_error:
        return {}
    directions = np.random.default_rng(options.arm_seed).normal(size=(len(robot.joints), 3))
    lengths = np.linalg.norm(directions, axis=1, keepdims=True)
    return dict(zip(robot.joints, options.link_error * directions / lengths, strict=True))


class Tracker:
    """
    Measures the pose of the marker once per period of the arm, with noise and delay.

    The frame of the measured pose is turned about the centre of the workspace: numbers of goals
    in it remain near that centre, so that they can be taken for positions in the base frame.
    """

    def __init__(
        self,
        robot: Robot,
        arm: ArmModel,
        options: TrackerOptions,
        period: float,
    ) -> None:
        """``arm`` is the nominal one; ``period``: time between two measured poses [s]."""
        for name in ('camera_turn', 'camera_offset', 'tool_offset_error'):
            if len(getattr(options, name)) != 3:
                raise OptionError(f'tracker.{name} takes three numbers, such as 0,0,0')
        self.arm = arm.displaced(link_errors(robot, options), options.tool_offset_error)
        """The arm as it is: its tool is the marker."""
        home = arm.tool_position(np.array([robot.home.get(one, 0.0) for one in arm.state_names]))
        space = reach_workspace(robot, home)
        about = pose_of((space.low + space.high) / 2.0)
        turn = pose_of(NONE, np.deg2rad(options.camera_turn))
        turned = after(after(about, turn), inverse(about))
        self._camera = after(pose_of(options.camera_offset), turned)
        self._base = inverse(self._camera)
        self._marker = pose_of(options.tool_offset_error)
        self._noise = options.noise
        self._readings: deque[Pose] = deque(maxlen=1 + round(options.delay / period))
        self._rng = np.random.default_rng(0)

    @property
    def is_random(self) -> bool:
        """Whether measured poses depend on the seed of the episode."""
        return self._noise > 0.0

    @property
    def pose(self) -> Pose:
        """The measured pose in the frame of the camera."""
        return self._readings[0]

    def reset(self, rng: np.random.Generator) -> None:
        """Forget the measured poses; the noise depends on ``rng``, whose numbers stay the same."""
        self._readings.clear()
        if self.is_random:
            self._rng = np.random.default_rng(int(copy.deepcopy(rng).integers(2**63)))

    def measure(self, position: Vector, orientation: Vector) -> None:
        """Take the pose of the tool in the base frame, (3,) [m] and (4,) (w, x, y, z)."""
        marker = after((position, orientation), self._marker)
        position, orientation = after(self._base, marker)
        if self.is_random:
            position = position + self._rng.normal(0.0, self._noise, 3)
        self._readings.append((position, orientation))

    def to_camera(self, positions: Vector) -> Vector:
        """Transform positions (..., 3) [m] from the base frame to the camera's frame."""
        return _moved(positions, self._base)

    def to_base(self, positions: Vector) -> Vector:
        """Transform positions (..., 3) [m] from the camera's frame to the base frame."""
        return _moved(positions, self._camera)

    def true_positions(self, postures: Vector) -> Vector:
        """Return the true positions (m, 3) [m] of the marker, seen in postures (m, n)."""
        return self.to_camera(self.arm.tool_positions(postures))


def _moved(positions: Vector, pose: Pose) -> Vector:
    """Return positions (..., 3) of the frame of ``pose`` in the frame in which that is given."""
    (offset, orientation), matrix = pose, np.empty(9)
    mujoco.mju_quat2Mat(matrix, orientation)
    # Not by a matrix product: that rounds one position and many in different ways.
    rows: Vector = matrix.reshape(3, 3) * np.asarray(positions)[..., None, :]
    return rows.sum(axis=-1) + offset
