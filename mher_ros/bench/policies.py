"""Policies that benchmarks train if none is given."""

from collections.abc import Mapping
import hashlib
import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mher_ros.bench.timing import log_progress
from mher_ros.files import CONFIG, POLICY
from mher_ros.learning.run.progress import Progress, Row, row_text
from mher_ros.learning.run.session import plan_run, start_training
from mher_ros.robots.robot import load_robot

POLICIES = Path('runs') / 'deploy'  # folder of the policies that are kept
PRESET = 'precise'  # of these policies


def twist_policy(seed: int) -> Path:
    """Return a policy whose actions move the tool of any arm, for every output."""
    return trained_policy('fetch_reach', PRESET, seed, POLICIES / f'fetch_reach-seed{seed}')


def robot_policy(robot: str, seed: int, changes: Mapping[str, Any]) -> Path:
    """
    Return the policy of the task ``reach`` that was trained on this arm.

    ``changes``: of the options of its training.
    """
    text = json.dumps(dict(changes), sort_keys=True) if changes else ''
    digest = f'-{hashlib.sha256(text.encode()).hexdigest()[:8]}' if changes else ''
    folder = POLICIES / f'reach-{load_robot(robot).name}-{PRESET}-seed{seed}{digest}'
    return trained_policy('reach', PRESET, seed, folder, {**changes, 'task.robot': robot})


def trained_policy(
    task: str,
    preset: str,
    seed: int,
    folder: Path,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> Path:
    """Return the policy in ``folder``; train it, or go on training it, if there is none yet."""
    if not (folder / POLICY).exists():
        log_progress(f'training a policy for {task} into {folder}')
        resume = (folder / CONFIG).exists()
        config, _ = plan_run(
            task,
            preset=preset,
            seed=seed,
            changes=dict(changes),
            folder=folder,
            resume=resume,
        )
        start_training(folder, config, [_Rows()], resume=resume)
    return folder / POLICY


class _Rows(Progress):
    def row(self, row: Row) -> None:
        log_progress(row_text(row, 'm'))
