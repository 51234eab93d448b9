"""The tasks as Gymnasium ids: ``gymnasium.make('mher_ros/FetchReach-v1')``."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import gymnasium
from mher_ros.options import override
from mher_ros.tasks import make, task_class, TASKS

__all__ = ['register_envs']


def register_envs() -> None:
    """Register every task; Gymnasium calls this itself when the package is installed."""
    for name, (_, class_name) in TASKS.items():
        env_id = f'mher_ros/{class_name}-v1'
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=functools.partial(_make, name))


def _make(name: str, render_mode: str | None = None, **options: Any) -> gymnasium.Env[Any, Any]:
    defaults = task_class(name).default_options
    known = {field.name for field in dataclasses.fields(defaults)}
    unknown = set(options) - known
    if unknown:
        raise TypeError(f'{name} has no options {sorted(unknown)}; it has {sorted(known)}')
    return make(name, override(defaults, options), render_mode)
