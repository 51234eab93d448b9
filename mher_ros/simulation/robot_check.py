"""Checks a robot file against its model and a policy's workspace: ``mher robot check``."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any

from mher_ros.control.reachability import Reachability
from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface, Vector
from mher_ros.robots.arm_model import ArmModel, read_description
from mher_ros.robots.description import some
from mher_ros.robots.model_file import read_model
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import Robot, ROBOT_DESCRIPTION, RobotError, Span
from mher_ros.robots.workspace import GoalError, place_workspace, point_text, Workspace
from mher_ros.simulation.home_proposal import HomeProposal, Proposal
from mher_ros.simulation.joint_plant import JointPlant
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.simulation.workspace_places import Place, WorkspacePlaces
import numpy as np

DEFAULTS = (('speed', 0.25, 'm/s'), ('acceleration', 1.0, 'm/s^2'), ('command_rate', 100.0, 'Hz'))


class RobotCheck:
    """Checks a robot file against a model, ``urdf`` or the simulation's, and a workspace."""

    def __init__(self, robot: Robot, interface: TaskInterface, urdf: Path | None = None) -> None:
        modelled, text = _modelled(robot, urdf)
        self.robot, self.arm, self._interface = robot, ArmModel(modelled, text), interface
        self._postures = WorkspacePlaces(self.arm)
        self.limits = _limits(modelled, self.arm, text)  # of each joint by name: value, source
        self.home = np.array([robot.home.get(name, 0.0) for name in self.arm.state_names])
        """Positions of ``state_names`` at home (n,)."""
        # Why it cannot be simulated, or only without forces, and links that touch nothing there.
        self.not_simulated, self.no_forces, self.untouched = _simulation(robot)
        self.workspace: Workspace | None = None
        self.places: tuple[Place, ...] = ()  # the centre and the corners of the workspace
        self.proposal: Proposal | None = None
        of_home = self._problems_of_home()
        problems = of_home + self._problems_of_workspace()
        if problems:
            search = HomeProposal(self._postures, interface, robot.workspace.scale)
            self.proposal = search.find(self.home, is_kept=not of_home)
            if self.proposal is None:
                problems.append('no home was found from which the arm reaches such a workspace')
        self.refused: dict[str, str] = {}
        """Why a goal at a place that the arm reaches is refused for a contact, by its name."""
        if not of_home and OUTPUTS[robot.output].of_joints:
            problems += self._contacts()
        self.problems = tuple(problems)  # one sentence each

    @property
    def links(self) -> Vector:
        """Positions of base, joints and tool at home (n + 2, 3) [m]."""
        return self._postures.links(self.home)

    @property
    def simulated_outputs(self) -> tuple[str, ...]:
        """Outputs that sim_node simulates."""
        return tuple(name for name in OUTPUTS if name != 'none' and not self.not_simulated)

    def lines(self) -> list[str]:
        robot, arm = self.robot, self.arm
        tool, _ = arm.tool_pose(self.home)
        limits = []
        for key, usual, unit in DEFAULTS:
            value = getattr(robot, key)
            source = 'default' if value == usual else 'robot file'
            limits.append(f'{key} {value:g} {unit} ({source})')
        lines = [
            f'robot         {robot.name}: {robot.description}',
            f'tool          {robot.tool_frame}, at home {point_text(tool)} m in {arm.base_frame}',
            f'limits        {", ".join(limits)}',
            f'output        {robot.output}; simulated: '
            f'{", ".join(self.simulated_outputs) or f"none: {self.not_simulated}"}',
        ]
        if self.no_forces:
            lines.append(f'simulation    the arm passes through obstacles: {self.no_forces}')
        if self.untouched:
            lines.append(
                'simulation    no contacts of these links, whose collision shapes it cannot use: '
                f'{some(self.untouched)}'
            )
        if self.arm.unprotected:
            lines.append(f'collisions    are not avoided for {self.arm.unprotected}')
        lines.append('')
        for joint, values in self.limits.items():
            text = ', '.join(f'{key} {value:g} ({of})' for key, (value, of) in values.items())
            lines.append(f'{joint}: {text}')
        if self.places:
            lines += ['', f'{"workspace":<10} {"place [m]":<24} {"reached":<12} {"turned":>6}  '
                      f'{"joint nearest to its limit":<34} condition']  # fmt: skip
        for place in self.places:
            result = place.ik
            reached = 'yes' if result.reached else f'no: {1000.0 * result.error:.0f} mm'
            near = f'{place.joint} {place.margin:.2f}' if place.joint else 'none has limits'
            lines.append(
                f'{place.name:<10} {point_text(place.position):<24} {reached:<12} '
                f'{math.degrees(result.turned):4.0f} °  {near:<34} {place.condition:.0f}'
            )
        lines += ['', *(f'problem: {problem}' for problem in self.problems)]
        if not self.problems:
            turned = max((place.ik.turned for place in self.places), default=0.0)
            lines.append(
                'all of the workspace is reached from home, with the tool turned by up to '
                f'{math.degrees(turned):.0f} °'
            )
        lines += [f'goals at {name} are refused: {why}' for name, why in self.refused.items()]
        singular = [
            place.name for place in self.places if self._postures.is_singular(place.condition)
        ]
        if singular:
            lines.append(f'close to a singularity, where the arm is slow: {", ".join(singular)}')
        if self.proposal is not None:
            home, origin = self.proposal
            lines += ['', 'proposal (obstacles are not considered):', 'home:']
            lines += [f'  {joint}: {position:.4f}' for joint, position in home.items()]
            lines += ['workspace:', f'  origin: [{", ".join(f"{part:.3f}" for part in origin)}]']
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the same for programs; infinite limits and margins are null."""
        places = [
            {
                'name': place.name,
                'position': place.position.tolist(),
                'reached': bool(place.ik.reached),
                'turned': float(place.ik.turned),
                'nearest_joint': place.joint,
                'margin': _finite(place.margin),
                'condition': _finite(place.condition),
                'refused': self.refused.get(place.name, ''),
            }
            for place in self.places
        ]
        limits = {
            joint: {
                key: {'value': _finite(value), 'source': source}
                for key, (value, source) in values.items()
            }
            for joint, values in self.limits.items()
        }
        return {
            'robot': self.robot.name,
            'simulated_outputs': list(self.simulated_outputs),
            'limits': limits,
            'places': places,
            'problems': list(self.problems),
            'proposal': None if self.proposal is None else self.proposal._asdict(),
        }

    def _problems_of_home(self) -> list[str]:
        problems = []
        if not self.robot.home:
            problems.append('home is expected: without it a simulation starts with zeros')
        limits = zip(self.arm.joint_names, self.arm.lower, self.arm.upper, strict=True)
        for (name, low, high), position in zip(limits, self.home, strict=False):
            if not low <= position <= high:
                problems.append(
                    f'home.{name} is expected from {low:g} to {high:g}, got {position:g}'
                )
        if self.robot.home and self._postures.is_singular(self._postures.condition(self.home)):
            problems.append('home is close to a singularity: the tool can hardly move')
        return problems

    def _problems_of_workspace(self) -> list[str]:
        robot, task = self.robot, self._interface.task
        origin = robot.workspace.origin
        if origin is None and robot.simulation_task != task:
            return [
                f'workspace.origin is expected: the centre of the workspace of {task} on this arm'
            ]
        self.workspace = place_workspace(self._interface, robot)
        self.places = self._postures.places(self.workspace, self.home)
        missed = [place.name for place in self.places if not place.ik.reached]
        if not missed:
            return []
        return [
            f'with the orientation of the tool at home the arm does not reach {", ".join(missed)} '
            'of the workspace'
        ]

    def _contacts(self) -> list[str]:
        """Return what the arm touches at home, and find goals that are refused for a contact."""
        reachability = Reachability(self.arm)
        for place in self.places:
            if place.ik.reached:
                try:
                    reachability.check_goal(place.position, self.home, None)
                except GoalError as error:
                    self.refused[place.name] = str(error)
        touching = reachability.touching(self.home)
        return [f'at home {touching} are too close to each other'] if touching else []


def draw_check(check: RobotCheck, path: Path) -> None:
    """Draw the arm at home and the workspace, from two sides, into a PNG file."""
    from matplotlib.figure import Figure

    links = check.links
    figure = Figure(figsize=(11, 5), layout='constrained')
    colours = ((True, 'tab:green', 'reached'), (False, 'tab:red', 'not reached'))
    for index, (elevation, azimuth) in enumerate(((20, -60), (0, -90)), 1):
        view: Any = figure.add_subplot(1, 2, index, projection='3d')
        view.plot(*links.T, 'o-', color='0.35', lw=3, label='the arm at home')
        view.scatter(*links[-1], color='tab:blue', s=60, label='its tool')
        for reached, colour, text in colours:
            points = [one.position for one in check.places if one.ik.reached == reached]
            if points:
                view.scatter(*np.array(points).T, color=colour, s=40, label=text)
        for one, other in itertools.combinations(check.places[1:], 2):
            if np.count_nonzero(one.position != other.position) == 1:
                view.plot(*np.transpose((one.position, other.position)), color='0.6', lw=1)
        view.view_init(elevation, azimuth)
        view.set(xlabel='x [m]', ylabel='y [m]', zlabel='z [m]')
        view.set_aspect('equal')
        view.set_proj_type('ortho')
        view.locator_params(nbins=5)
    view.legend()
    figure.suptitle(f'{check.robot.name}, in {check.arm.base_frame}')
    figure.savefig(path, dpi=110)


def _modelled(robot: Robot, urdf: Path | None) -> tuple[Robot, str | None]:
    """Return the robot with a file as its model, or the text of its model."""
    if urdf is not None:
        read_model(urdf)  # says why it cannot be read, if so
        return dataclasses.replace(robot, model=str(urdf.absolute())), None
    if robot.simulation_task:
        return robot, JointPlant(robot.simulation_task).description(robot.name)
    if robot.model != ROBOT_DESCRIPTION:
        return robot, None
    if not robot.simulation_model:
        raise RobotError(
            f'robot {robot.name} takes its model from {ROBOT_DESCRIPTION}: name a file with it '
            '(--urdf FILE, or simulation_model in the robot file)'
        )
    return robot.simulated(), None


def _simulation(robot: Robot) -> tuple[str, str, tuple[str, ...]]:
    """
    Return why a robot cannot be simulated, and why not with forces; empty: it can.

    Also return the links whose collision shapes the simulation cannot use.
    """
    if not robot.simulation_model:
        return 'there is no simulation_model', '', ()
    try:
        arm = simulated_robot(robot)
    except MherError as error:
        return str(error), '', ()
    return '', arm.no_forces, arm.untouched


def _limits(
    robot: Robot, arm: ArmModel, text: str | None
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


def _finite(value: float) -> float | None:
    """Return a number that JSON knows; None if it is not finite."""
    return float(value) if math.isfinite(value) else None
