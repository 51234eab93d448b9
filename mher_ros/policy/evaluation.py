"""What a policy file is worth on the task it was trained for."""

from __future__ import annotations

from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.options import OptionError, override
from mher_ros.policy.contract import PolicyFileError
from mher_ros.policy.run import OnnxPolicy
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import episode_seed, Evaluator
from mher_ros.tasks.task import Task
import numpy as np
from numpy.typing import ArrayLike

__all__ = ['evaluate_policy', 'evaluation_lines', 'make_task']

EVALUATION_STREAM = 3
"""Second number of an episode's seed, so that no goal of a training run is used again."""
MILLIMETRES = 1000.0
WORKSPACE = ('goal_low', 'goal_high')


def evaluate_policy(
    policy: OnnxPolicy, episodes: int = 100, seed: int = 0, workers: int | None = None
) -> dict[str, Any]:
    """Try the policy on random goals; errors are in mm where the goal is in metres."""
    task = make_task(policy)
    seeds = [episode_seed(seed, EVALUATION_STREAM, index) for index in range(episodes)]
    summary = Evaluator(policy.interface.task, task.options, workers).run(policy, seeds).summary()
    in_metres = policy.interface.goal[0].unit == 'm'
    result: dict[str, Any] = {'task': policy.interface.task, 'seed': seed}
    for key, value in summary.items():
        if in_metres and key in ('mean_error', 'median_error', 'p95_error', 'motion_at_goal'):
            result[f'{key}_mm'] = MILLIMETRES * value
        else:
            result[key] = value
    return result


def evaluation_lines(result: dict[str, Any]) -> list[str]:
    """Return the figures of ``evaluate_policy`` as lines for people."""
    suffix, unit = ('_mm', ' mm') if 'mean_error_mm' in result else ('', '')
    steps = result['median_steps_to_reach']
    figures = {
        'goals': str(result['goals']),
        'success': f'{100.0 * result["success_rate"]:.1f} %',
        'mean error': f'{result["mean_error" + suffix]:.3g}{unit}',
        'median error': f'{result["median_error" + suffix]:.3g}{unit}',
        '95 % of errors below': f'{result["p95_error" + suffix]:.3g}{unit}',
        'steps to reach (median)': 'none reached' if steps is None else f'{steps:g}',
        'motion at the goal (median)': f'{result["motion_at_goal" + suffix]:.3g}{unit}',
    }
    return [f'{name:<28} {value}' for name, value in figures.items()]


def make_task(policy: OnnxPolicy, render_mode: str | None = None) -> Task:
    """Build the task that the policy's contract describes, as it describes it."""
    name = policy.interface.task
    config = policy.contract.training.get('config')
    stored = config.get('task') if isinstance(config, dict) else None
    try:
        options = override(
            task_class(name).default_options, stored if isinstance(stored, dict) else {}
        )
    except OptionError as error:
        raise PolicyFileError(f'this policy is for a task that is not here: {error}') from error
    task = make(name, options, render_mode)
    for key, here in task.interface.to_dict().items():
        there = policy.interface.to_dict()[key]
        if here != there and not (key in WORKSPACE and _close(here, there, task.interface)):
            raise PolicyFileError(
                f'this policy is for another {name}: its {key} is {there}, here it is {here}'
            )
    return task


def _close(here: ArrayLike, there: ArrayLike, interface: TaskInterface) -> bool:
    # Simulated, the workspace comes out a little different on another processor.
    return np.allclose(here, there, rtol=0.0, atol=1e-3 * interface.success_threshold)
