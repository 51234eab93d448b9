"""The tasks as Gymnasium ids: ``gymnasium.make('mher_ros/FetchReach-v1')``."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
from mher_ros.options import override
from mher_ros.tasks import make, task_class, TASKS
from mher_ros.tasks.task import Task

__all__ = ['register_envs']


def register_envs() -> None:
    """Register every task; Gymnasium calls this itself when the package is installed."""
    for name, (_, class_name) in TASKS.items():
        env_id = f'mher_ros/{class_name}-v1'
        if env_id not in gymnasium.registry:
            entry_point = f'{__name__}:{make_registered.__name__}'
            gymnasium.register(env_id, entry_point=entry_point, kwargs={'task': name})


def make_registered(task: str, render_mode: str | None = None, **options: Any) -> Task:
    """Build the task for ``gymnasium.make``, whose other arguments are the task's options."""
    defaults = task_class(task).default_options
    known = {field.name for field in dataclasses.fields(defaults)}
    unknown = set(options) - known
    if unknown:
        raise TypeError(f'{task} has no options {sorted(unknown)}; it has {sorted(known)}')
    return make(task, override(defaults, options), render_mode)
