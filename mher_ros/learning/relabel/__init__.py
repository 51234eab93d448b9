"""Hindsight relabelling: strategies for new goals, and samplers of relabelled batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mher_ros.registry import Registry

if TYPE_CHECKING:
    from mher_ros.learning.relabel.strategies import GoalStrategy

_STRATEGIES = 'mher_ros.learning.relabel.strategies'  # imports torch, so import it late
RELABELLING: Registry[type[GoalStrategy]] = Registry(
    'relabelling strategy',
    {
        'future': f'{_STRATEGIES}:FutureGoals',
        'virtual': f'{_STRATEGIES}:VirtualGoals',
        'mixed': f'{_STRATEGIES}:MixedGoals',
        'random': f'{_STRATEGIES}:RandomGoals',
        'uniform': f'{_STRATEGIES}:UniformGoals',
    },
)
"""Values of ``relabel.goals``, beside ``none``."""
