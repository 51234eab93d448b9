"""Whether a robot file fits its arm and a policy's workspace: what ``mher robot check`` tells."""

from __future__ import annotations

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

from mher_ros.control.arm_model import ArmModel, read_description, TOOL
from mher_ros.control.model_file import find_file
from mher_ros.control.model_xml import read_model
from mher_ros.control.reachability import Attempt, corners_of, one_turn, Reachability
from mher_ros.control.robot import OUTPUTS, ROBOT_DESCRIPTION, RobotConfig, RobotError, Span
from mher_ros.control.workspace import Workspace
from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.kinematic_plant import KinematicPlant
from mher_ros.simulation.urdf import urdf_of
import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ['check_robot', 'draw_check', 'Place', 'Proposal', 'RobotCheck']

Vector = NDArray[np.float64]

NEAR_LIMIT = 0.1
"""A joint this near to its limit leaves little room [rad or m]."""
NEAR_SINGULAR = 100.0
"""Condition number above which the arm is close to a singularity."""
LENGTH = 0.3
"""Motion of the tool that a rad of turning counts as, in condition numbers [m]."""
SAMPLES, TRIED = 2000, 20
"""Postures that are looked at for a new home, and the best of them that are tried."""
FREE = 0.15
"""Distance from the axis of the base that a proposed workspace leaves to the arm itself [m]."""
OFFSETS = (0.0, -0.1, 0.1, -0.2, 0.2)
"""Where a workspace is tried along each axis, from the tool at home [m]."""


class Place(NamedTuple):
    """A place of the workspace, and how the arm gets there from home."""

    name: str
    position: Vector
    """(3,) [m]"""
    attempt: Attempt
    joint: str
    """The joint that comes nearest to a limit."""
    margin: float
    """How near that is [rad or m]."""
    condition: float
    """Condition number of how the joints move and, if there are six, turn the tool."""


class Proposal(NamedTuple):
    """A home, and a workspace about it that is reached to the corners."""

    home: dict[str, float]
    origin: tuple[float, float, float]


@dataclasses.dataclass(frozen=True)
class RobotCheck:
    """What there is to say of a robot file."""

    robot: RobotConfig
    arm: ArmModel
    limits: dict[str, dict[str, tuple[float, str]]]
    """For each joint its limits, by name: the value, and where it comes from."""
    home: Vector
    """Where the joints of ``state_names`` are at home (n,)."""
    workspace: Workspace | None
    places: tuple[Place, ...]
    """The centre and the corners of the workspace."""
    problems: tuple[str, ...]
    """What should be changed, in a sentence each."""
    proposal: Proposal | None
    not_simulated: str
    """Why sim_node cannot stand in for the arm; empty if it can."""

    @property
    def simulated_outputs(self) -> tuple[str, ...]:
        """Outputs that sim_node can stand in for."""
        return tuple(name for name in OUTPUTS if name != 'none' and not self.not_simulated)

    def lines(self) -> list[str]:
        """Return the report."""
        robot, arm = self.robot, self.arm
        position, _ = arm.tool_pose(self.home)
        defaults = {'speed': 0.25, 'acceleration': 1.0, 'command_rate': 100.0}
        told = {
            key: f'{getattr(robot, key):g} {unit} '
            f'({"default" if getattr(robot, key) == defaults[key] else "robot file"})'
            for key, unit in (('speed', 'm/s'), ('acceleration', 'm/s^2'), ('command_rate', 'Hz'))
        }
        lines = [
            f'robot         {robot.name}: {robot.description}',
            f'tool          {robot.tool_frame}, at home {_text(position)} m in {arm.base_frame}',
            f'limits        {", ".join(f"{key} {value}" for key, value in told.items())}',
            f'output        {robot.output}; simulated: '
            f'{", ".join(self.simulated_outputs) or f"none: {self.not_simulated}"}',
            '',
        ]
        for joint, limits in self.limits.items():
            values = ', '.join(f'{key} {value:g} ({of})' for key, (value, of) in limits.items())
            lines.append(f'{joint}: {values}')
        if self.places:
            lines += ['', f'{"workspace":<10} {"place [m]":<24} {"reached":<12} {"turned":>6}  '
                      f'{"joint nearest to its limit":<34} condition']  # fmt: skip
        for place in self.places:
            attempt = place.attempt
            reached = 'yes' if attempt.reached else f'no: {1000.0 * attempt.error:.0f} mm'
            near = f'{place.joint} {place.margin:.2f}' if place.joint else 'none has limits'
            lines.append(
                f'{place.name:<10} {_text(place.position):<24} {reached:<12} '
                f'{math.degrees(attempt.turned):4.0f} °  {near:<34} {place.condition:.0f}'
            )
        lines += ['', *(f'problem: {problem}' for problem in self.problems)]
        if not self.problems:
            turned = max((place.attempt.turned for place in self.places), default=0.0)
            lines.append(
                'all of the workspace is reached from home, with the tool turned by up to '
                f'{math.degrees(turned):.0f} °'
            )
        singular = [place.name for place in self.places if place.condition > NEAR_SINGULAR]
        if singular:
            lines.append(f'close to a singularity, where the arm is slow: {", ".join(singular)}')
        if self.proposal is not None:
            home, origin = self.proposal
            lines += ['', 'proposed (nothing is known of what stands around the arm):', 'home:']
            lines += [f'  {joint}: {position:.4f}' for joint, position in home.items()]
            lines += ['workspace:', f'  origin: [{", ".join(f"{part:.3f}" for part in origin)}]']
        return lines


def check_robot(
    robot: RobotConfig, interface: TaskInterface, urdf: Path | None = None
) -> RobotCheck:
    """
    Check a robot file against its model and the workspace of a policy with this ``interface``.

    The model is the file ``urdf``, or what a simulation of the robot takes.
    """
    text = _model_text(robot, urdf)
    arm = ArmModel(robot, text)
    check = _Checker(robot, arm, interface)
    problems = list(check.problems)
    proposal = check.propose() if problems else None
    if problems and proposal is None:
        problems.append('no place was found where the arm reaches all of such a workspace')
    return RobotCheck(
        robot,
        arm,
        _limits(robot, arm, text),
        check.home,
        check.workspace,
        check.places,
        tuple(problems),
        proposal,
        _not_simulated(robot),
    )


def draw_check(check: RobotCheck, path: Path) -> None:
    """Draw the arm at home and the workspace, from two sides, into a PNG file."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    links = _links(check.arm, check.home)
    figure = pyplot.figure(figsize=(11, 5), layout='constrained')
    for index, (elevation, azimuth) in enumerate(((20, -60), (0, -90)), 1):
        view: Any = figure.add_subplot(1, 2, index, projection='3d')
        view.plot(*links.T, 'o-', color='0.35', lw=3, label='the arm at home')
        view.scatter(*links[-1], color='tab:blue', s=60, label='its tool')
        for reached, colour, text in (
            (True, 'tab:green', 'reached'),
            (False, 'tab:red', 'not reached'),
        ):
            points = [one.position for one in check.places if one.attempt.reached == reached]
            if points:
                view.scatter(*np.array(points).T, color=colour, s=40, label=text)
        for one, other in itertools.combinations(check.places[1:], 2):
            if np.count_nonzero(one.position != other.position) == 1:
                edge = np.array((one.position, other.position))
                view.plot(*edge.T, color='0.6', lw=1)
        view.view_init(elevation, azimuth)
        view.set(xlabel='x [m]', ylabel='y [m]', zlabel='z [m]')
        view.set_aspect('equal')
        view.set_proj_type('ortho')
        view.locator_params(nbins=5)
    view.legend()
    figure.suptitle(f'{check.robot.name}, in {check.arm.base_frame}')
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


class _Checker:
    """Tries the workspace, and others if need be."""

    def __init__(self, robot: RobotConfig, arm: ArmModel, interface: TaskInterface) -> None:
        self._robot, self._arm, self._interface = robot, arm, interface
        self._reachability = Reachability(arm)
        self._data = mujoco.MjData(arm.model)
        self.home = np.array([robot.home.get(name, 0.0) for name in arm.state_names])
        self.problems: list[str] = []
        self._home_is_good = self._check_home()
        self.workspace: Workspace | None = None
        self.places: tuple[Place, ...] = ()
        origin = robot.workspace.origin
        if origin is None and robot.simulation_task != interface.task:
            self.problems.append(
                f'workspace.origin is expected: where on this arm the workspace of '
                f'{interface.task} lies'
            )
            return
        box = None if robot.box is None else (robot.box.low, robot.box.high)
        self.workspace = self._workspace_at(origin, box)
        self.places = self._places(self.workspace, self.home)
        missed = [place.name for place in self.places if not place.attempt.reached]
        if missed:
            self.problems.append(
                f'with the tool turned as at home the arm does not reach {", ".join(missed)} of '
                'the workspace'
            )

    def propose(self) -> Proposal | None:
        """Return a home, the given one if it is good, and a workspace that is reached."""
        homes = [self.home] if self._home_is_good else []
        for home in (*homes, *self._postures()):
            origin = self._origin_at(home)
            if origin is not None:
                told = np.round(home, 4).tolist()
                joints = dict(zip(self._arm.joint_names, told, strict=False))
                return Proposal(joints, (float(origin[0]), float(origin[1]), float(origin[2])))
        return None

    def _check_home(self) -> bool:
        before = len(self.problems)
        if not self._robot.home:
            self.problems.append('home is expected: without it a simulation starts with zeros')
        limits = zip(self._arm.joint_names, self._arm.lower, self._arm.upper, strict=True)
        for (name, low, high), position in zip(limits, self.home, strict=False):
            if not low <= position <= high:
                self.problems.append(
                    f'home.{name} is expected from {low:g} to {high:g}, got {position:g}'
                )
        if self._robot.home and self._condition(self.home) > NEAR_SINGULAR:
            self.problems.append('home is close to a singularity: the tool can hardly move there')
        return len(self.problems) == before

    def _workspace_at(self, origin: Any, box: Any = None) -> Workspace:
        interface = self._interface
        return Workspace(
            interface.goal_low, interface.goal_high, origin, self._robot.workspace.scale, box
        )

    def _places(
        self, workspace: Workspace, home: Vector, all_or_none: bool = False
    ) -> tuple[Place, ...]:
        """Return the centre and the corners; with ``all_or_none`` nothing if one is missed."""
        _, orientation = self._arm.tool_pose(home)
        places = []
        corners = corners_of(workspace)
        names = ['centre', *(f'corner {number}' for number in range(1, 9))]
        points = [(workspace.low + workspace.high) / 2.0, *corners]
        for name, point in zip(names, points, strict=True):
            attempt = self._reachability.attempt(point, home, orientation)
            if all_or_none and not attempt.reached:
                return ()
            joint, margin = self._margin(attempt.positions)
            condition = self._condition(attempt.positions)
            places.append(Place(name, point, attempt, joint, margin, condition))
        return tuple(places)

    def _origin_at(self, home: Vector) -> Vector | None:
        """Return the nearest good place for the workspace about the tool at home."""
        tool, _ = self._arm.tool_pose(home)
        offsets = sorted(itertools.product(OFFSETS, repeat=3), key=lambda way: np.dot(way, way))
        for offset in offsets:
            origin = np.round(tool + offset, 3)
            workspace = self._workspace_at(origin)
            if min(math.hypot(x, y) for x, y, _ in corners_of(workspace)) < FREE:
                continue
            places = self._places(workspace, home, all_or_none=True)
            if places and all(
                place.margin >= NEAR_LIMIT and place.condition <= NEAR_SINGULAR for place in places
            ):
                return origin
        return None

    def _postures(self) -> list[Vector]:
        """Return postures (n,) from which the tool moves well, the best first."""
        arm, random = self._arm, np.random.default_rng(0)
        low, high = one_turn(arm.lower, arm.upper)
        scored = []
        for joints in random.uniform(low, high, (SAMPLES, len(low))):
            positions = self.home.copy()
            positions[: len(joints)] = joints
            scored.append((self._ease(positions), positions))
        scored.sort(key=lambda pair: -pair[0])
        return [self._upright(posture) for score, posture in scored[:TRIED] if score > 0.0]

    def _upright(self, positions: Vector) -> Vector:
        """Return a posture with the tool at the same place and straight down, if there is one."""
        place, orientation = self._arm.tool_pose(positions)
        axis, turn, down = np.empty(3), np.empty(4), np.empty(4)
        mujoco.mju_rotVecQuat(axis, np.array((0.0, 0.0, 1.0)), orientation)
        # The least turn from the tool's axis to straight down.
        across = np.cross(axis, (0.0, 0.0, -1.0))
        mujoco.mju_axisAngle2Quat(
            turn,
            across / max(float(np.linalg.norm(across)), 1e-9),
            math.acos(np.clip(-axis[2], -1, 1)),
        )
        mujoco.mju_mulQuat(down, turn, orientation)
        attempt = self._reachability.attempt(place, positions, down)
        return attempt.positions if attempt.reached else positions

    def _ease(self, positions: Vector) -> float:
        """Return how well the tool moves in front of and above the arm's base, pointing down."""
        links, (_, margin) = _links(self._arm, positions), self._margin(positions)
        tool, span = links[-1], np.ptp(links, axis=0).max()
        if margin < 3.0 * NEAR_LIMIT or tool[0] < span / 3.0 or links[1:, 2].min() < 0.05:
            return 0.0
        aside = abs(tool[1]) / max(tool[0], 1e-6)
        condition = self._condition(positions)
        down = -self._data.site_xmat[self._arm.model.site(TOOL).id].reshape(3, 3)[2, 2]
        return (1.1 + down) ** 2 / condition / (1.0 + 2.0 * aside)

    def _margin(self, positions: Vector) -> tuple[str, float]:
        """Return the commanded joint that is nearest to a limit, and how near that is."""
        arm = self._arm
        joints = positions[: len(arm.joint_names)]
        margins = np.minimum(joints - arm.lower, arm.upper - joints)
        index = int(margins.argmin())
        return (arm.joint_names[index] if margins[index] < math.inf else ''), margins[index]

    def _condition(self, positions: Vector) -> float:
        """Return the condition number of what the commanded joints do to the tool."""
        arm, data = self._arm, self._data
        data.qpos[:] = positions[arm.order]
        mujoco.mj_kinematics(arm.model, data)
        mujoco.mj_comPos(arm.model, data)
        jacobian = np.zeros((6, arm.model.nv))
        mujoco.mj_jacSite(arm.model, data, jacobian[:3], jacobian[3:], arm.model.site(TOOL).id)
        jacobian[3:] *= LENGTH
        count = len(arm.joint_names)
        rows = jacobian[: 6 if count >= 6 else 3, np.argsort(arm.order)[:count]]
        singular = np.linalg.svd(rows, compute_uv=False)
        return float(singular[0] / singular[-1]) if singular[-1] > 1e-9 else math.inf


def _model_text(robot: RobotConfig, urdf: Path | None) -> str | None:
    """Return URDF or MJCF; None where the robot file names a file itself."""
    if urdf is not None:
        return read_model(urdf)
    if robot.simulation_task:
        plant = JointPlant(robot.simulation_task)
        return urdf_of(plant.model, robot.name, plant.joint_names, plant.frame)
    if robot.model != ROBOT_DESCRIPTION:
        return None
    if not robot.simulation_model:
        raise RobotError(
            f'robot {robot.name} takes its model from {ROBOT_DESCRIPTION}: name a file with it '
            '(--urdf FILE, or simulation_model in the robot file)'
        )
    return read_model(find_file(robot.simulation_model, robot.folder))


def _not_simulated(robot: RobotConfig) -> str:
    """Return why the arm cannot be simulated; empty if it can."""
    if robot.simulation_task:
        return ''
    if not robot.simulation_model:
        return 'there is no simulation_model'
    try:
        KinematicPlant(robot)
    except MherError as error:
        return str(error)
    return ''


def _limits(
    robot: RobotConfig, arm: ArmModel, text: str | None
) -> dict[str, dict[str, tuple[float, str]]]:
    model = {joint.name: joint for joint in read_description(robot, text).joints}
    limits: dict[str, dict[str, tuple[float, str]]] = {}
    for index, name in enumerate(arm.joint_names):
        given, limits[name] = robot.joint_limits.get(name, Span()), {}
        for field in dataclasses.fields(Span):
            key = field.name if hasattr(arm, field.name) else f'{field.name}_limits'
            value = float(getattr(arm, key)[index])
            if getattr(given, field.name) is not None:
                source = 'robot file'
            else:
                source = 'model' if getattr(model[name], field.name) == value else 'default'
            limits[name][field.name] = value, source
    return limits


def _links(arm: ArmModel, positions: Vector) -> Vector:
    """Return where the base, the joints and the tool are (n + 2, 3) [m]."""
    data = mujoco.MjData(arm.model)
    data.qpos[:] = positions[arm.order]
    mujoco.mj_kinematics(arm.model, data)
    return np.vstack((np.zeros(3), data.xpos[1:], data.site_xpos[arm.model.site(TOOL).id]))


def _text(position: Vector) -> str:
    return '(' + ', '.join(f'{part:.3f}' for part in position) + ')'
