"""The fast preset, a choice at a time."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.catalogue._fast import fast_variant
from mher_ros.experiments.experiment import Experiment, Variant


def _ablated(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return a variant evaluated on fewer goals, since there are many of them."""
    return fast_variant(name, 'fetch_reach', algorithm, schedule__evaluation_goals=50, **changes)


EXPERIMENT = Experiment(
    'fast_ablation',
    'What does each choice of fast bring on fetch_reach?',
    (
        _ablated('fast'),
        _ablated('no supervised loss', agent__alpha=0.0),
        _ablated('supervised loss fades', agent__alpha_half_life=150.0),
        _ablated('virtual goals only', relabel__goals='virtual'),
        _ablated('rollouts of 5 steps', relabel__steps=5),
        _ablated('real future goals only (her)', 'her'),
        _ablated('way to the goal not shown', agent__relative_goal=False),
        _ablated('places told in standard deviations', agent__workspace_units=False),
        _ablated('no updates on the warm-up', schedule__warmup_updates=0),
        _ablated(
            'half the updates', schedule__updates_per_episode=50, schedule__warmup_updates=100
        ),
        _ablated('two model steps an update', model__fits_per_update=2),
        _ablated('three warm-up episodes', schedule__warmup_episodes=3),
        _ablated('actor itself evaluated', agent__deploy_average=False),
        _ablated(
            'episodes of 100 steps',
            schedule__episode_steps=100,
            schedule__warmup_episodes=1,
            schedule__warmup_updates=400,
            schedule__updates_per_episode=400,
        ),
    ),
    measures=('steps_to_95', 'early_success'),
)
