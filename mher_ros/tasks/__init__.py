"""
The tasks: what is observed, commanded and achieved, and when it is a success.

Importing this package registers them with Gymnasium, as ``mher_ros/FetchReach-v1`` and so on.
"""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any, TYPE_CHECKING

import gymnasium
from mher_ros.options import OptionError, override

if TYPE_CHECKING:
    from mher_ros.tasks.task import Task, TaskOptions

__all__ = ['make', 'make_registered', 'task_class', 'TASKS']

TASKS = {
    'point2d_large': ('mher_ros.tasks.point2d', 'Point2DLarge'),
    'point2d_four_room': ('mher_ros.tasks.point2d', 'Point2DFourRoom'),
    'fetch_reach': ('mher_ros.tasks.fetch_reach', 'FetchReach'),
    'sawyer_reach': ('mher_ros.tasks.sawyer_reach', 'SawyerReach'),
    'reacher': ('mher_ros.tasks.reacher', 'Reacher'),
}
"""Name to (module, class); modules are imported when asked for, since MuJoCo is not light."""


def task_class(name: str) -> type[Task]:
    """Return the class of the task called ``name``."""
    if name not in TASKS:
        raise OptionError(f'unknown task {name!r}; the tasks are {", ".join(TASKS)}')
    module, attribute = TASKS[name]
    found: type[Task] = getattr(importlib.import_module(module), attribute)
    return found


def make(name: str, options: TaskOptions | None = None, render_mode: str | None = None) -> Task:
    """Build the task called ``name``, with its own default options unless others are given."""
    return task_class(name)(options, render_mode)


def make_registered(task: str, render_mode: str | None = None, **options: Any) -> Task:
    """Build the task for ``gymnasium.make``, whose other arguments are the task's options."""
    defaults = task_class(task).default_options
    known = {field.name for field in dataclasses.fields(defaults)}
    unknown = set(options) - known
    if unknown:
        raise TypeError(f'{task} has no options {sorted(unknown)}; it has {sorted(known)}')
    return make(task, override(defaults, options), render_mode)


for _task, (_, _class) in TASKS.items():
    gymnasium.register(
        f'mher_ros/{_class}-v1',
        entry_point=f'{__name__}:{make_registered.__name__}',
        kwargs={'task': _task},
    )
