"""Transitions as the networks learn from them."""

from __future__ import annotations

import dataclasses

from torch import Tensor

__all__ = ['Batch']


@dataclasses.dataclass(frozen=True)
class Batch:
    """B transitions with the goals, new or original, that they are learnt under."""

    observations: Tensor
    """(B, n), with ``goals`` written in where observations repeat the goal."""
    actions: Tensor
    next_observations: Tensor
    goals: Tensor
    rewards: Tensor
    """(B,), under ``goals``."""
    relabelled: Tensor
    """(B,), 1 on rows that have a new goal."""
    features: Tensor
    """(B, f), what the networks see of ``observations`` and ``goals``."""
