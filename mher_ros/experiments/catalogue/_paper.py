"""Variants as the paper has them, on the tasks of its figures."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.experiment import Variant
from mher_ros.learning.plangan_config import CHEAP_PLAN

__all__ = ['BOX_NOTE', 'paper_variant', 'PLAN_NOTE']

BOX_NOTE = (
    "On point2d_large the box has a half side of 4, as in the authors' code (task.box=4), so that "
    'their curves stand beside ours; the paper says 5.'
)

PLAN_NOTE = (
    "PlanGAN imagines 8 x 4 x 15 steps for an action, not the paper's 20 x 50 x 50, by its "
    'generators alone, and takes the weighted mean of the first actions, not the best; it has two '
    'small GANs, not three large ones, at ten times the learning rate, and plans with a slow mean '
    'of them, which its authors do not. It is evaluated on 20 goals instead of 100.'
)


def paper_variant(
    name: str, task: str, algorithm: str = 'mher', recorder: str = '', **changes: Any
) -> Variant:
    """Return a system with the preset ``paper``; ``agent__alpha=1.0`` sets agent.alpha."""
    values: dict[str, Any] = {'task.box': 4.0} if task == 'point2d_large' else {}
    if algorithm == 'plangan':
        values |= {f'plan.{key}': value for key, value in CHEAP_PLAN.items()}
        values |= {'model.hidden': (64, 64), 'schedule.evaluation_goals': 20}
    values |= {key.replace('__', '.'): value for key, value in changes.items()}
    return Variant(name, task, algorithm, 'paper', tuple(values.items()), recorder)
