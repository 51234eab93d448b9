"""How well a policy leads an arm."""

from __future__ import annotations

from pathlib import Path
import sys
from typing import Any

from mher_ros.bench.measured import Measured
from mher_ros.control.robot import load_robot
from mher_ros.experiments.table import Table
from mher_ros.learning.progress import Progress, Row, row_text
from mher_ros.learning.run import plan_run, start_training
from mher_ros.learning.run_folder import CONFIG, POLICY
from mher_ros.policy.run import load
from mher_ros.ros.deployed_arm import deployed_workspace, reach_goals
from mher_ros.tasks import task_class
import numpy as np

__all__ = ['deployed_policy', 'measure']

HEADER = (
    'robot',
    'goals reached',
    'error: median, 95 % below',
    'motion at the goal: median, 95 % below',
    'median time',
)
POLICIES = Path('runs') / 'deploy'
"""Where policies are kept that were trained for this."""


def measure(
    robot: str, goals: int, seed: int, policy: str | None = None, output: str = 'robot'
) -> Measured:
    """
    Send a simulated arm to random goals that it may go to: in its policy's workspace and its box.

    sim_node, policy_node and this process know each other by topics alone. A goal counts as
    reached if in the end the tool is within the task's own threshold of it. Without ``policy``
    one is trained with the preset ``precise`` and this seed, and kept.
    """
    path = Path(policy) if policy else deployed_policy(robot, seed)
    interface = load(path).interface
    space = deployed_workspace(interface, robot)
    wanted = np.random.default_rng(seed).uniform(space.low, space.high, (goals, 3))
    threshold = task_class(interface.task).default_options.threshold * space.scale
    trials = reach_goals(robot, path, wanted, threshold, output)
    errors = np.array([trial.error for trial in trials])
    motions = np.array([trial.motion for trial in trials])
    seconds = np.array([trial.seconds for trial in trials if np.isfinite(trial.seconds)])
    figures: dict[str, Any] = {
        'robot': robot,
        'policy': str(path),
        'goals': goals,
        'reached': int((errors <= threshold).sum()),
        'refused': sum(not trial.accepted for trial in trials),
        'threshold_mm': 1000.0 * threshold,
        'median_error_mm': float(1000.0 * np.median(errors)),
        'p95_error_mm': float(1000.0 * np.percentile(errors, 95)),
        'motion_at_goal_mm': float(1000.0 * np.median(motions)),
        'p95_motion_at_goal_mm': float(1000.0 * np.percentile(motions, 95)),
        'worst_motion_at_goal_mm': float(1000.0 * motions.max()),
        'median_seconds': float(np.median(seconds)) if seconds.size else None,
    }
    row = (
        robot,
        f'{figures["reached"]} of {goals}',
        f'{figures["median_error_mm"]:.1f} mm, {figures["p95_error_mm"]:.1f} mm',
        f'{figures["motion_at_goal_mm"]:.2f} mm, {figures["p95_motion_at_goal_mm"]:.2f} mm',
        f'{np.median(seconds):.2f} s' if seconds.size else 'never',
    )
    table = Table('', HEADER, (row,), f'Policy: {path}. Near enough: {1000.0 * threshold:.0f} mm.')
    samples = {
        'error_mm': (1000.0 * errors).tolist(),
        'motion_mm': (1000.0 * motions).tolist(),
        'seconds': [trial.seconds if np.isfinite(trial.seconds) else None for trial in trials],
    }
    return Measured(figures, (table,), samples)


def deployed_policy(robot: str, seed: int) -> Path:
    """Return the policy for a robot: of its own task, or Fetch's; trained if there is none yet."""
    task = load_robot(robot).simulation_task or 'fetch_reach'
    folder = POLICIES / f'{task}-seed{seed}'
    if not (folder / POLICY).exists():
        print(f'training a policy for {task} into {folder}', file=sys.stderr, flush=True)
        resume = (folder / CONFIG).exists()
        config, _ = plan_run(task, preset='precise', seed=seed, folder=folder, resume=resume)
        start_training(folder, config, [_Rows()], resume=resume)
    return folder / POLICY


class _Rows(Progress):
    """Tells of each evaluation, beside what the benchmark prints."""

    def row(self, row: Row) -> None:
        print(row_text(row, 'm'), file=sys.stderr, flush=True)
