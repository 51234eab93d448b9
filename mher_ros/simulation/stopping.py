"""How far a simulated arm moves on after a stop."""

from collections.abc import Iterator
import math
from typing import NamedTuple

from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import length
from mher_ros.control.reachability import corners_of
from mher_ros.interface import TaskInterface
from mher_ros.robots.robot import Robot
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
import numpy as np

SHARES = (0.5, 1.0)  # of the speed limit
FAST = 0.9  # share of that speed at which the arm is stopped
LONGEST = 10.0  # time for a motion, and for coming to rest [s]
STILL, STILL_FOR = 1e-3, 0.2  # speed of every link of an arm at rest [m/s]; time for which [s]


class Stop(NamedTuple):
    """One stop of a moving arm."""

    speed: float
    """Of the tool when the stop was requested [m/s]."""
    time: float
    """From the request until all links are at rest [s]."""
    tool: float
    """Displacement of the tool in that time [m]."""
    link: float
    """Largest displacement of the origin of a link in that time [m]."""


def stopping_lines(robot: Robot, interface: TaskInterface, payload: float) -> Iterator[str]:
    """
    Yield what a person should know about the stops of a simulated arm, with the worst of each.

    ``payload``: mass at the tool that the drives do not know [kg].
    """
    test = StoppingTest(robot, interface, payload)
    yield (
        f'stopping      in simulation, with a payload of {payload:g} kg; from the stop until all '
        'links are at rest'
    )
    for share in SHARES:
        stops = list(test.stops(share * robot.speed))
        if not stops:
            yield f'{share * robot.speed:.3g} m/s: the arm did not reach this speed'
            continue
        speed, time, *moved = np.max(stops, axis=0)
        tool, link = (f'{1000.0 * distance:.0f} mm' for distance in moved)
        yield (
            f'{speed:.3f} m/s: up to {time:.2f} s, the tool moves {tool}, any link up to {link} '
            f'({len(stops)} stops)'
        )


class StoppingTest:
    """Stops an arm that moves straight between opposite corners of its workspace."""

    def __init__(self, robot: Robot, interface: TaskInterface, payload: float = 0.0) -> None:
        """``payload``: mass at the tool that the drives do not know [kg]."""
        self._robot, self._interface = robot, interface
        self._workspace = place_workspace(interface, robot)
        self._output = robot.output if robot.output.startswith('joint') else 'joint_position'
        self._world = DynamicArm(robot, self._output, payload)

    def stops(self, speed: float) -> Iterator[Stop]:
        """Yield the stops from this speed [m/s]; none if the arm cannot move there."""
        world = self._world
        controller = GoalController(
            None,
            self._interface,
            world.arm,
            self._workspace,
            self._output,
            limits=MotionLimits(speed, self._robot.acceleration),
        )
        path = controller.path
        corners = corners_of(self._workspace)
        for start, end in zip(corners, reversed(corners), strict=True):
            world.settle(path)
            try:
                controller.take_goal(world.now, start, 'project')
                self._run(controller, math.inf)
                controller.take_goal(world.now, end, 'project')
            except GoalError:
                continue
            if self._run(controller, FAST * speed) >= FAST * speed:
                yield self._stop(controller)
                path.monitor.clear()

    def _run(self, controller: GoalController, speed: float) -> float:
        """Move to the goal until the tool has this speed; return its largest speed [m/s]."""
        world, path = self._world, controller.path
        end, fastest, last = world.now + LONGEST, 0.0, world.tool_position()
        while world.now < end and fastest < speed and controller.goal is not None:
            world.step(path)
            tool = world.tool_position()
            fastest, last = max(fastest, float(np.linalg.norm(tool - last)) / world.period), tool
            if controller.reached and path.is_moving and path.filter.is_at_rest:
                break
        return fastest

    def _stop(self, controller: GoalController) -> Stop:
        world, path = self._world, controller.path
        began, tool = world.now, world.tool_position()
        links = last = world.data.xpos.copy()
        far = np.zeros(2)
        moved_at, speed = began, length(path.filter.tool_velocity)
        path.monitor.stop('stopping test')
        while world.now < moved_at + STILL_FOR and world.now < began + LONGEST:
            world.step(path)
            here = world.data.xpos.copy()
            if np.linalg.norm(here - last, axis=1).max() > STILL * world.period:
                moved_at = world.now
            away = length(world.tool_position() - tool), np.linalg.norm(here - links, axis=1).max()
            far, last = np.maximum(far, away), here
        return Stop(speed, moved_at - began, *far.tolist())
