"""Evaluation of a policy file on its task."""

import dataclasses
from typing import Any

from mher_ros.control.fit import check_same_arm, FitError
from mher_ros.options import dotted, OptionError, override
from mher_ros.policy.contract import PolicyFileError
from mher_ros.policy.onnx_policy import OnnxPolicy
from mher_ros.registry import check_trusted
from mher_ros.tasks import make, task_class
from mher_ros.tasks.rollouts import episode_seed, Evaluation, Evaluator
from mher_ros.tasks.task import Task
import numpy as np

EVALUATION_STREAM = 3  # part of an episode's seed: its goals differ from those of training
MILLIMETRES = 1000.0
WORKSPACE = ('goal_low', 'goal_high')


def evaluate_policy(
    policy: OnnxPolicy, episodes: int = 100, seed: int = 0, workers: int | None = None
) -> dict[str, Any]:
    """Return figures over random goals; errors are in mm if the goal is in metres."""
    task = make_task(policy)
    evaluator = Evaluator(policy.interface.task, task.options, workers)
    return figures(task, evaluator.run(policy, evaluation_seeds(seed, episodes)), seed)


def evaluation_seeds(seed: int, episodes: int) -> list[int]:
    """Return the seed of each episode."""
    return [episode_seed(seed, EVALUATION_STREAM, index) for index in range(episodes)]


def figures(task: Task, evaluation: Evaluation, seed: int) -> dict[str, Any]:
    """Return figures of an evaluation; errors are in mm if the goal is in metres."""
    in_metres = task.interface.goal[0].unit == 'm'
    result: dict[str, Any] = {'task': task.interface.task, 'seed': seed}
    for key, value in evaluation.summary().items():
        if in_metres and key in ('mean_error', 'median_error', 'p95_error', 'motion_at_goal'):
            result[f'{key}_mm'] = MILLIMETRES * value
        else:
            result[key] = value
    return result


def evaluation_lines(result: dict[str, Any]) -> list[str]:
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
    if 'median_angle' in result:
        figures['median angle error'] = f'{result["median_angle"]:.3g} rad'
        figures['95 % of angle errors below'] = f'{result["p95_angle"]:.3g} rad'
    return [f'{name:<28} {value}' for name, value in figures.items()]


def make_task(policy: OnnxPolicy) -> Task:
    """Return the task of the policy's contract; PolicyFileError if it differs here."""
    name = policy.interface.task
    config = policy.contract.training.get('config')
    stored = config.get('task') if isinstance(config, dict) else None
    try:
        check_trusted(name)
        options = override(
            task_class(name).default_options, dotted(stored) if isinstance(stored, dict) else {}
        )
    except OptionError as error:
        raise PolicyFileError(f'the task of this policy is unknown here: {error}') from error
    task = make(name, options)
    there, here = policy.interface.arm, task.interface.arm
    if there is not None and here is not None:
        try:
            check_same_arm(there, here)
        except FitError as error:
            raise PolicyFileError(f'this policy is for another {name}: {error}') from None
    expected = dataclasses.asdict(policy.interface)
    for key, found in dataclasses.asdict(task.interface).items():
        wanted = expected[key]
        if key == 'arm' and (there is None) == (here is None):
            continue
        # The workspace is simulated, and differs slightly between processors.
        tolerance = 1e-3 * task.interface.success_threshold
        is_close = key in WORKSPACE and np.allclose(found, wanted, rtol=0.0, atol=tolerance)
        if found != wanted and not is_close:
            raise PolicyFileError(
                f'this policy is for another {name}: expected {key} {wanted}, got {found}'
            )
    return task
