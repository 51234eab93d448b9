"""How well a policy moves an arm to goals, against a straight line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mher_ros.bench.policies import robot_policy
from mher_ros.bench.result import Result
from mher_ros.experiments.tables import Table
from mher_ros.options import read_changes
from mher_ros.policy.onnx_policy import load
from mher_ros.robots.robot import arm_names, load_robot
from mher_ros.robots.workspace import place_workspace
from mher_ros.ros.deploy.goal_trials import GoalTrial, run_goal_trials
from mher_ros.tasks import task_class
import numpy as np

ALL = 'all'  # robots of this package
HEADER = (
    *('robot', 'controller', 'goals reached', 'error: median, 95 % below'),
    *('motion at the goal: median, 95 % below', 'median time'),
)


def measure(
    robot: str,
    goals: int,
    seed: int,
    policy: str | None = None,
    output: str = 'robot',
    controller: str = 'both',
    set: Sequence[str] = (),  # noqa: A002  (the name of the flag)
) -> Result:
    """
    Send simulated arms to random goals in the workspaces of their policies and their boxes.

    sim_node, policy_node and this process communicate by topics alone. A goal counts as reached
    if the tool ends within the task's own threshold of it. ``robot``: a robot, or all arms of
    this package. Without ``policy``, one for ``reach`` is trained on each arm with this seed, and
    kept; ``set`` changes options of its training. ``controller``: policy, straight_line, or both,
    one after the other with the same goals.
    """
    changes = read_changes(set, '--set')
    names = ('policy', 'straight_line') if controller == 'both' else (controller,)
    robots = arm_names() if robot == ALL else (robot,)
    paths = {
        name: Path(policy) if policy else robot_policy(name, seed, changes) for name in robots
    }
    found, samples, rows = {}, {}, []
    for name, path in paths.items():
        found[name], samples[name], more = _measure_robot(name, path, goals, seed, output, names)
        rows += more
    if robot == ALL:
        values: dict[str, Any] = {'robot': ALL, 'goals': goals, 'robots': found}
    else:
        values, samples = found[robot], samples[robot]
    note = ' '.join(f'Policy: {path}.' for path in dict.fromkeys(paths.values()))
    reached = {f'{one["threshold_mm"]:.0f} mm' for one in found.values()}
    note += f' Reached: within {", ".join(sorted(reached))}.'
    return Result(values, (Table('', HEADER, tuple(rows), note),), samples)


def _measure_robot(
    robot: str, path: Path, goals: int, seed: int, output: str, names: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any], list[tuple[str, ...]]]:
    """Return figures, samples and rows of the table of one robot."""
    interface = load(path).interface
    space = place_workspace(interface, load_robot(robot))
    wanted = np.random.default_rng(seed).uniform(space.low, space.high, (goals, 3))
    threshold = task_class(interface.task).default_options.threshold * space.scale
    figures, samples, rows = {}, {}, []
    for name in names:
        trials = run_goal_trials(robot, path, wanted, threshold, output, name)
        figures[name], samples[name] = _figures(trials, threshold)
        rows.append(_row(robot, name, goals, figures[name]))
    values = {
        'robot': robot,
        'policy': str(path),
        'goals': goals,
        'threshold_mm': 1000.0 * threshold,
        **figures[names[0]],
        **figures,
    }
    return values, samples, rows


def _figures(trials: list[GoalTrial], threshold: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return figures over all trials, and the values of each."""
    errors = np.array([trial.error for trial in trials])
    motions = np.array([trial.motion for trial in trials])
    seconds = [trial.seconds if np.isfinite(trial.seconds) else None for trial in trials]
    known = [value for value in seconds if value is not None]
    figures = {
        'reached': int((errors <= threshold).sum()),
        'refused': sum(not trial.accepted for trial in trials),
        'median_error_mm': float(1000.0 * np.median(errors)),
        'p95_error_mm': float(1000.0 * np.percentile(errors, 95)),
        'motion_at_goal_mm': float(1000.0 * np.median(motions)),
        'p95_motion_at_goal_mm': float(1000.0 * np.percentile(motions, 95)),
        'worst_motion_at_goal_mm': float(1000.0 * motions.max()),
        'median_seconds': float(np.median(known)) if known else None,
    }
    lengths = {'error_mm': (1000.0 * errors).tolist(), 'motion_mm': (1000.0 * motions).tolist()}
    return figures, {**lengths, 'seconds': seconds}


def _row(robot: str, controller: str, goals: int, one: dict[str, Any]) -> tuple[str, ...]:
    seconds = one['median_seconds']
    return (
        robot,
        controller,
        f'{one["reached"]} of {goals}',
        f'{one["median_error_mm"]:.2f} mm, {one["p95_error_mm"]:.2f} mm',
        f'{one["motion_at_goal_mm"]:.2f} mm, {one["p95_motion_at_goal_mm"]:.2f} mm',
        'never' if seconds is None else f'{seconds:.2f} s',
    )
