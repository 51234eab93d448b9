"""Variants as the paper has them, on the tasks of its figures."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.experiment import Variant

__all__ = ['BOX_NOTE', 'paper_variant']

BOX_NOTE = (
    "On point2d_large the box has a half side of 4, as in the authors' code (task.box=4), so that "
    'their curves stand beside ours; the paper says 5.'
)


def paper_variant(
    name: str, task: str, algorithm: str = 'mher', recorder: str = '', **changes: Any
) -> Variant:
    """Return a system with the preset ``paper``; ``agent__alpha=1.0`` sets agent.alpha."""
    values = {'task.box': 4.0} if task == 'point2d_large' else {}
    values |= {key.replace('__', '.'): value for key, value in changes.items()}
    return Variant(name, task, algorithm, 'paper', tuple(values.items()), recorder)
