"""Straight motions without calibration: to goals in the frame of a camera at an unknown place."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mher_ros.control.command_path import CommandPath
from mher_ros.control.goal_controller import GoalController
from mher_ros.control.motion import length, Motion, ToolVelocity
from mher_ros.interface import Vector
from mher_ros.simulation.reach import Reach
import numpy as np

SECONDS = 10.0  # time for each goal: more than an episode of the policy
OUTPUT = 'joint_trajectory'
STILL = 1e-5  # displacement in a second up to which the arm rests [m]
GAIN = 2.0  # velocity of the tool per measured distance [1/s]


class Line(Protocol):
    """A controller in lockstep with a simulated arm."""

    path: CommandPath

    def begin_goal(self, goal: Vector) -> None:
        """Move to a goal (3,) [m] in the frame of the camera, after the first joint state."""


class NominalLine:
    """``straight_line`` as deployed: it takes the frame of the camera for the base frame."""

    def __init__(self, task: Reach) -> None:
        self._controller = GoalController(
            None, task.interface, task.arm, task.workspace, OUTPUT, **_options(task)
        )
        self.path = self._controller.path

    def begin_goal(self, goal: Vector) -> None:
        self._controller.take_goal(0.0, goal, outside='project')


class VisualServo:
    """
    Position-based visual servoing, without the orientation of the camera.

    It moves the tool along the measured vector to the goal, as if the axes of the camera were
    those of the base.
    """

    def __init__(self, task: Reach) -> None:
        self._task, self._goal = task, np.zeros(3)
        box = task.workspace.box_low, task.workspace.box_high
        self.path = CommandPath(self, task.arm, box, OUTPUT, **_options(task))

    def begin_goal(self, goal: Vector) -> None:
        self._goal = goal
        self.path.monitor.take_goal(0.0)

    def begin(self, now: float) -> None:
        """Do nothing: it depends on nothing that was before."""

    def ask(self, now: float) -> Motion | None:
        velocity, most = GAIN * (self._goal - self._task.tracked), self.path.limits.speed
        return ToolVelocity(velocity * min(1.0, most / max(length(velocity), 1e-9)))

    def progress(self, tool: Vector) -> tuple[float, float]:
        """Return a distance of 0: the time for a goal is limited anyway."""
        return 0.0, 0.0


LINES: dict[str, Callable[[Reach], Line]] = {
    'straight_line': NominalLine,
    'visual_servo': VisualServo,
}


def final_errors(
    task: Reach,
    make_line: Callable[[Reach], Line],
    seeds: Sequence[int],
    report: Callable[[int], None] = lambda done: None,
) -> Vector:
    """Return the true distances (goals,) [m] from goals after ``SECONDS``."""
    errors = []
    for done, seed in enumerate(seeds):
        report(done)
        errors.append(_final_error(task, make_line(task), seed))
    return np.array(errors)


def _final_error(task: Reach, line: Line, seed: int) -> float:
    goal = task.reset(seed=seed)[0]['desired_goal']
    path, last, before = line.path, None, np.full(3, np.inf)
    path.makes_ahead = False
    second = round(1.0 / task.command_period)
    for step in range(round(SECONDS / task.command_period)):
        now, (positions, velocities) = step * task.command_period, task.joint_state()
        if step % second == 0:
            if length(_place(task) - before) < STILL:
                break  # it rests, at the goal or elsewhere
            before = _place(task)
        path.take_state(now, round(now * 1e9), positions, velocities)
        if step == 0:
            line.begin_goal(goal)
        command = path.tick(now)
        last = last if command is None else command.joint_positions
        task.advance(last)
    return float(task.interface.distance(_place(task), goal))


def _place(task: Reach) -> Vector:
    """Return the true place of the marker (3,) [m] in the camera."""
    return task.judged_goals(task.observe(*task.joint_state())['observation'])


def _options(task: Reach) -> dict[str, Any]:
    return {
        'limits': task.limits,
        'command_rate': 1.0 / task.command_period,
        'still_for': 0.0,  # the states of a simulation are right
    }
