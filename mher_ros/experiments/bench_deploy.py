"""How well a policy leads an arm."""

from __future__ import annotations

from pathlib import Path
import sys
from typing import Any

from mher_ros.control.robot import load_robot
from mher_ros.experiments.deployed_arm import reach_goals, trained_workspace
from mher_ros.learning.progress import Progress, Row, row_text
from mher_ros.learning.run import CONFIG, plan_run, POLICY, start_training
from mher_ros.policy.run import load
from mher_ros.tasks import task_class
import numpy as np

__all__ = ['bench_deploy', 'deploy_lines', 'deployed_policy']

POLICIES = Path('runs') / 'deploy'
"""Where policies are kept that were trained for this."""


def bench_deploy(
    robot: str, goals: int, seed: int, policy: str | None = None, output: str = 'robot'
) -> dict[str, Any]:
    """
    Send a simulated arm to random goals of the workspace that its policy was trained in.

    sim_node, policy_node and this process know each other by topics alone. A goal counts as
    reached if in the end the tool is within the task's own threshold of it. Without ``policy``
    one is trained with the preset ``precise`` and this seed, and kept.
    """
    path = Path(policy) if policy else deployed_policy(robot, seed)
    interface = load(path).interface
    space = trained_workspace(interface, robot)
    wanted = np.random.default_rng(seed).uniform(space.low, space.high, (goals, 3))
    threshold = task_class(interface.task).default_options.threshold * space.scale
    trials = reach_goals(robot, path, wanted, threshold, output)
    errors = np.array([trial.error for trial in trials])
    motions = np.array([trial.motion for trial in trials])
    seconds = np.array([trial.seconds for trial in trials if np.isfinite(trial.seconds)])
    return {
        'robot': robot,
        'policy': str(path),
        'goals': goals,
        'reached': int((errors <= threshold).sum()),
        'threshold_mm': 1000.0 * threshold,
        'median_error_mm': float(1000.0 * np.median(errors)),
        'p95_error_mm': float(1000.0 * np.percentile(errors, 95)),
        'motion_at_goal_mm': float(1000.0 * np.median(motions)),
        'p95_motion_at_goal_mm': float(1000.0 * np.percentile(motions, 95)),
        'worst_motion_at_goal_mm': float(1000.0 * motions.max()),
        'median_seconds': float(np.median(seconds)) if seconds.size else None,
    }


def deploy_lines(result: dict[str, Any]) -> list[str]:
    """Return the figures of ``bench_deploy`` as lines for people."""
    seconds = result['median_seconds']
    return [
        f'{result["robot"]} with {result["policy"]}',
        f'goals reached within {result["threshold_mm"]:.0f} mm  {result["reached"]} of '
        f'{result["goals"]}',
        f'error at the goal            median {result["median_error_mm"]:.1f} mm, '
        f'95 % below {result["p95_error_mm"]:.1f} mm',
        f'motion at the goal           median {result["motion_at_goal_mm"]:.2f} mm, '
        f'95 % below {result["p95_motion_at_goal_mm"]:.2f} mm (peak to peak, last second)',
        f'time until it is there       median '
        f'{"-" if seconds is None else format(seconds, ".2f")} s',
    ]


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
