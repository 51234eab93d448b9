"""The experiments there are."""

from __future__ import annotations

from typing import Any

from mher_ros.experiments.experiment import Experiment, Variant

__all__ = ['EXPERIMENTS']


def _paper(algorithm: str, preset: str = 'paper') -> Variant:
    name = algorithm if preset == 'paper' else f'{algorithm} {preset}'
    return Variant(name, 'point2d_large', algorithm, preset, (('task.box', 4.0),))


def _fetch(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return a variant of ``fast`` on fetch_reach, evaluated after every episode of 25 steps."""
    values = {'schedule.steps': 1500, 'schedule.episodes_per_epoch': 1}
    values |= {key.replace('__', '.'): value for key, value in changes.items()}
    return Variant(name, 'fetch_reach', algorithm, 'fast', tuple(values.items()))


def _ablated(name: str, algorithm: str = 'mher', **changes: Any) -> Variant:
    """Return such a variant, evaluated on fewer goals since there are many of them."""
    return _fetch(name, algorithm, schedule__evaluation_goals=50, **changes)


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            'paper_point2d',
            "Does the paper preset learn as the authors' code does?",
            (_paper('mher'), _paper('mher', 'paper_2021'), _paper('her'), _paper('ddpg')),
            ('mean_success',),
        ),
        Experiment(
            'fast_fetch',
            'How many environment steps does fast take to reach with Fetch?',
            (_fetch('mher'), _fetch('her', 'her')),
            ('steps_to_95', 'early_success'),
        ),
        Experiment(
            'fast_sawyer',
            'How many environment steps does fast take to reach with Sawyer?',
            (Variant('mher', 'sawyer_reach'), Variant('her', 'sawyer_reach', 'her')),
            ('steps_to_95', 'early_success'),
        ),
        Experiment(
            'fast_ablation',
            'What does each choice of fast bring on fetch_reach?',
            (
                _ablated('fast'),
                _ablated('no supervised loss', agent__alpha=0.0),
                _ablated('supervised loss does not fade', agent__alpha_half_life=0.0),
                _ablated('virtual goals only', relabel__goals='virtual'),
                _ablated('rollouts of 5 steps', relabel__steps=5),
                _ablated('real future goals only (her)', 'her'),
                _ablated('way to the goal not shown', agent__relative_goal=False),
                _ablated('half the updates', schedule__updates_per_episode=50),
                _ablated('actor itself evaluated', agent__deploy_average=False),
                _ablated(
                    'episodes of 100 steps',
                    schedule__episode_steps=100,
                    schedule__warmup_episodes=1,
                    schedule__updates_per_episode=400,
                ),
            ),
            ('steps_to_95', 'early_success'),
        ),
    )
}
