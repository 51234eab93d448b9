"""Motions of a simulated arm to goals of ``reach``, as in deployment, each from home."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
import itertools
from pathlib import Path
import time
from typing import Any, NamedTuple

from mher_ros.bench.skill_scenes import is_blocked
from mher_ros.bench.timing import log_progress, PROGRESS_PERIOD
from mher_ros.control.filter.motion_limiter import MotionLimits
from mher_ros.control.goal_controller import GoalController
from mher_ros.interface import TaskInterface, Vector
from mher_ros.policy.onnx_policy import OnnxPolicy
from mher_ros.robots.outputs import OUTPUTS
from mher_ros.robots.robot import load_robot, Robot
from mher_ros.robots.workspace import GoalError, place_workspace
from mher_ros.simulation.dynamic_arm import DynamicArm
import numpy as np

LONGEST = 10.0  # duration of a motion [s]; an episode of training takes 4 s
SETTLING, REST = 0.5, 1.0
"""Time after the last command that moves, and time for which the tool's motion is measured [s]."""


class Motion(NamedTuple):
    """A motion to a goal, and how it ended."""

    reached: bool
    """Whether the tool is within the threshold, and no obstacle between it and the goal."""
    reason: str
    """Code of the status that dropped the goal; empty: none did."""
    error: float
    """Distance from the goal at rest [m]."""
    at_goal: float
    """Diagonal of the box that the tool moved in during the last second [m]."""
    seconds: float
    """Duration of the motion, without the rest at its end [s]."""
    contacts: int
    """Number of contacts, as MuJoCo finds them."""
    deepest: float
    """Depth of the deepest of them [m]."""


def move_all(
    robot_file: str | Path,
    interface: TaskInterface,
    goals: Iterable[Vector],
    policy: OnnxPolicy | None = None,
    randomise: float = 0.0,
    plants: Iterable[int] = itertools.repeat(0),
) -> list[Motion]:
    """
    Move to goals (3,) by a policy; None: straight. Each motion starts at home.

    ``randomise``: factor of the ranges that the plants are drawn from by the seeds ``plants``.
    """
    robot = load_robot(robot_file)
    output = robot.output if OUTPUTS[robot.output].of_joints else 'joint_position'
    arm = DynamicArm(robot, output, randomise=randomise)
    motions, logged = [], time.monotonic()
    for number, (goal, seed) in enumerate(zip(goals, plants, strict=False), 1):
        arm.reset(seed)
        motions.append(_move(arm, robot, policy, interface, output, goal))
        if time.monotonic() > logged + PROGRESS_PERIOD:
            logged = time.monotonic()
            log_progress(f'{robot.name}: {number} motions')
    return motions


def _move(
    world: DynamicArm,
    robot: Robot,
    policy: OnnxPolicy | None,
    interface: TaskInterface,
    output: str,
    goal: Vector,
) -> Motion:
    limits = MotionLimits(robot.speed, robot.acceleration)
    space = place_workspace(interface, robot)
    controller = GoalController(policy, interface, world.arm, space, output, limits=limits)
    path = controller.path
    world.step(path)
    places = deque([world.tool_position()], maxlen=round(REST / world.period))
    try:
        controller.take_goal(world.now, goal)
    except GoalError as error:
        return _motion(world, controller, goal, places, 0.0, error.code)
    arrived = world.now
    while controller.goal is not None and world.now < LONGEST:
        world.step(path)
        places.append(world.tool_position())
        if not (controller.reached and path.is_moving and path.filter.is_at_rest):
            arrived = world.now
        elif world.now >= arrived + SETTLING + REST:
            break
    dropped = controller.goal is None
    if dropped:
        world.settle(path)
    reason = path.monitor.last_drop if dropped else ''
    return _motion(world, controller, goal, places, arrived, reason)


def _motion(
    world: DynamicArm,
    controller: GoalController,
    goal: Vector,
    places: Iterable[Vector],
    seconds: float,
    reason: str,
) -> Motion:
    tool, contacts = world.tool_position(), world.contacts()
    error = float(np.linalg.norm(tool - goal))
    return Motion(
        reached=error <= controller.threshold and not is_blocked(world.arm, tool, goal),
        reason=reason,
        error=error,
        at_goal=float(np.linalg.norm(np.ptp(list(places), axis=0))),
        seconds=seconds,
        contacts=contacts.number,
        deepest=contacts.deepest,
    )


def summary(motions: Sequence[Motion]) -> dict[str, Any]:
    """Return figures as JSON values; motions at the goal are those of the goals reached."""
    if not motions:
        return {'goals': 0, 'reached': 0, 'share': None, 'contacts': 0, 'deepest_mm': 0.0}
    reached = [one for one in motions if one.reached]
    errors = 1e3 * np.array([one.error for one in motions])
    at_goal = 1e3 * np.array([one.at_goal for one in reached])
    return {
        'goals': len(motions),
        'reached': len(reached),
        'share': len(reached) / len(motions),
        'contacts': sum(one.contacts for one in motions),
        'deepest_mm': 1e3 * max(one.deepest for one in motions),
        'median_error_mm': float(np.median(errors)),
        'p95_error_mm': float(np.percentile(errors, 95)),
        'p95_motion_at_goal_mm': float(np.percentile(at_goal, 95)) if reached else None,
        'worst_motion_at_goal_mm': float(at_goal.max()) if reached else None,
        'median_seconds': float(np.median([one.seconds for one in reached])) if reached else None,
        'dropped': dict(sorted(Counter(one.reason for one in motions if one.reason).items())),
    }
