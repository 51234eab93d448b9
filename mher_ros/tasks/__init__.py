"""The tasks: Gymnasium GoalEnvs that declare their interface."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TYPE_CHECKING

import gymnasium
from mher_ros.options import OptionError, override
from mher_ros.registry import Registry

if TYPE_CHECKING:
    from mher_ros.tasks.task import Task, TaskOptions

__all__ = ['PAPER_TASKS', 'make', 'make_registered', 'task_class', 'TASKS']

PAPER_TASKS = {
    'point2d_large': 'mher_ros.tasks.point2d:Point2DLarge',
    'point2d_four_room': 'mher_ros.tasks.point2d:Point2DFourRoom',
    'fetch_reach': 'mher_ros.tasks.fetch_reach:FetchReach',
    'sawyer_reach': 'mher_ros.tasks.sawyer_reach:SawyerReach',
    'reacher': 'mher_ros.tasks.reacher:Reacher',
}
_OWN_TASKS = {**PAPER_TASKS, 'reach': 'mher_ros.simulation.reach:Reach'}
TASKS: Registry[Any] = Registry('task', _OWN_TASKS)
"""Tasks of the paper, ``reach`` for any robot, and those that users register."""


@functools.cache
def task_class(name: str) -> type[Task]:
    """Return a task by its name, by the Gymnasium id of a GoalEnv, or by ``module:Class``."""
    from mher_ros.tasks.goal_env import gymnasium_task, is_gymnasium_id, task_from_entry

    if name not in TASKS and ':' not in name and is_gymnasium_id(name):
        return gymnasium_task(name)
    try:
        return task_from_entry(name, TASKS[name])
    except OptionError as error:
        if name in TASKS or ':' in name:
            raise
        raise OptionError(f'{error}, or the Gymnasium id of a GoalEnv') from None


def make(name: str, options: TaskOptions | None = None, render_mode: str | None = None) -> Task:
    return task_class(name)(options, render_mode)


def make_registered(task: str, render_mode: str | None = None, **options: Any) -> Task:
    """
    Return a task as a Gymnasium GoalEnv, also for ``gymnasium.make``.

    ``task`` is a registered name, a Gymnasium id of a GoalEnv, or ``'module:Class'``. ``mher
    tasks`` lists the ``options`` of each task.
    """
    defaults = task_class(task).default_options
    known = {field.name for field in dataclasses.fields(defaults)}
    if unknown := set(options) - known:
        raise TypeError(f'{task} has no options {sorted(unknown)}; it has {sorted(known)}')
    return make(task, override(defaults, options), render_mode)


# Importing this package registers the tasks with Gymnasium, as ``mher_ros/FetchReach-v1`` etc.
for _task, _path in _OWN_TASKS.items():
    gymnasium.register(
        f'mher_ros/{_path.partition(":")[2]}-v1',
        entry_point=f'{__name__}:{make_registered.__name__}',
        kwargs={'task': _task},
    )
