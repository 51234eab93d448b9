"""Policies that benchmarks train if none is given."""

from pathlib import Path

from mher_ros.bench.timing import log_progress
from mher_ros.files import CONFIG, POLICY
from mher_ros.learning.run.progress import Progress, Row, row_text
from mher_ros.learning.run.session import plan_run, start_training
from mher_ros.robots.robot import load_robot

POLICIES = Path('runs') / 'deploy'  # folder of the policies that are kept


def deployed_policy(robot: str, seed: int) -> Path:
    """Return the policy of the robot's own task, or of Fetch's; train it if there is none yet."""
    task = load_robot(robot).simulation_task or 'fetch_reach'
    return trained_policy(task, 'precise', seed, POLICIES / f'{task}-seed{seed}')


def trained_policy(task: str, preset: str, seed: int, folder: Path) -> Path:
    """Return the policy in ``folder``; train it, or go on training it, if there is none yet."""
    if not (folder / POLICY).exists():
        log_progress(f'training a policy for {task} into {folder}')
        resume = (folder / CONFIG).exists()
        config, _ = plan_run(task, preset=preset, seed=seed, folder=folder, resume=resume)
        start_training(folder, config, [_Rows()], resume=resume)
    return folder / POLICY


class _Rows(Progress):
    def row(self, row: Row) -> None:
        log_progress(row_text(row, 'm'))
