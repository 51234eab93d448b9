"""Every choice that PlanGAN has beyond those of the other learners."""

from __future__ import annotations

import dataclasses
from typing import Any

from mher_ros.options import option

__all__ = ['CHEAP_PLAN', 'PlanConfig']


@dataclasses.dataclass(frozen=True)
class PlanConfig:
    """
    The ensemble of GANs and the planner that imagines with it.

    The defaults of the planner are those that the paper of MHER compares with; those of the GANs
    are of PlanGAN's own authors (Charlesworth and Montana 2020).
    """

    gans: int = option(3, 'generators, each with a critic of its own', low=1, high=100)
    latent: int = option(64, 'random numbers that a generator is given', low=1, high=8192)
    hidden: tuple[int, ...] = option(
        (512, 512), 'units of each hidden layer of generators and critics', low=1, high=8192
    )
    learning_rate: float = option(1e-4, "Adam's, for generators and critics", low=1e-6, high=1.0)
    weight_decay: float = option(2e-4, "Adam's, for both", low=0.0, high=1.0)
    average_keep: float = option(
        0.998,
        'share of the old, at each fit, in the mean of the generators that plans are made with',
        low=0.0,
        high=1.0,
    )
    consistency: float = option(
        30.0,
        "weight of the squared error between a generator's next state and the model's",
        low=0.0,
        high=1e6,
    )
    batch: int = option(128, 'sequences, or transitions of the model, in a fit', low=1, high=65536)
    sequence: int = option(5, 'steps that a generator is trained to imagine', low=1, high=1000)
    fits_per_update: int = option(5, 'fits of model and every GAN in an update', low=0)
    warmup_fits: int = option(2000, 'fits of every GAN after the warm-up', low=0)
    first_actions: int = option(20, 'first actions compared', low=1, high=10_000)
    trajectories: int = option(
        50, 'trajectories imagined after each first action', low=1, high=10_000
    )
    steps: int = option(50, 'steps of each, the first included', low=1, high=1000)
    next_state: str = option(
        'model',
        'what says where an imagined action leads: the model, or the generator (cheaper)',
        choices=('model', 'generator'),
    )
    choice: str = option(
        'best',
        'of the first actions take the best, or the mean weighted by exponentials of the scores',
        choices=('best', 'weighted'),
    )
    sharpness: float = option(
        5.0, 'weighted: weight of a standard deviation of score, logarithmic', low=0.0, high=1e3
    )


CHEAP_PLAN: dict[str, Any] = {
    'gans': 2,
    'latent': 8,
    'hidden': (64, 64),
    'learning_rate': 1e-3,
    'batch': 64,
    'warmup_fits': 1500,
    'first_actions': 8,
    'trajectories': 4,
    'steps': 15,
    'next_state': 'generator',
    'choice': 'weighted',
}
"""
What differs where a run must take minutes: a hundredth of the steps for an action.

A mean of few first actions is steadier than the best of them.
"""
