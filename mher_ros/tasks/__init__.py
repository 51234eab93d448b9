"""The tasks: what is observed, commanded and achieved, and when it is a success."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from mher_ros.options import OptionError

if TYPE_CHECKING:
    from mher_ros.tasks.task import Task, TaskOptions

__all__ = ['TASKS', 'make', 'task_class']

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
