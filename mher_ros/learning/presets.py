"""Named sets of values of the learner's choices."""

from __future__ import annotations

from typing import Any

from mher_ros.learning.plangan_config import CHEAP_PLAN

__all__ = ['DEPLOYED', 'EPISODES_PER_EPOCH', 'PRECISION', 'PRESETS']

CHEAP = {f'plan.{key}': value for key, value in CHEAP_PLAN.items()}
FAST: dict[str, Any] = {
    'agent.hidden': (128, 128),
    'agent.relative_goal': True,
    'agent.workspace_units': True,
    'agent.hide_still': True,
    'agent.batch': 128,
    'agent.gamma': 0.95,
    'agent.target_every': 1,
    'agent.target_keep': 0.95,
    'agent.deploy_average': True,
    'agent.alpha': 1.0,
    'relabel.goals': 'mixed',
    'relabel.steps': 2,
    'model.hidden': (128, 128),
    'model.members': 1,
    'model.fits_per_update': 1,
    'schedule.episode_steps': 25,
    'schedule.warmup_episodes': 2,
    'schedule.warmup_updates': 200,
    'schedule.updates_per_episode': 100,
    'schedule.episodes_per_epoch': 2,
    'schedule.steps': 3000,
    'schedule.until': 0.95,
    **CHEAP,
}
ROOMS: dict[str, Any] = {
    'agent.hidden': (128, 128, 128),
    'agent.waves': 2,
    'agent.batch': 256,
    'agent.gamma': 0.95,
    'agent.target_every': 1,
    'agent.target_keep': 0.98,
    'agent.deploy_average': True,
    'agent.critic_learning_rate': 2e-3,
    'agent.action_penalty': 0.1,
    'agent.alpha': 1.0,
    'agent.alpha_half_life': 150.0,
    'relabel.elsewhere': 1.0,
    'relabel.probability': 0.5,
    'relabel.steps': 2,
    'model.hidden': (128, 128),
    'model.members': 1,
    'model.fits_per_update': 1,
    'schedule.updates_per_episode': 100,
    **CHEAP,
}
PRESETS: dict[str, dict[str, Any]] = {
    'paper': {'agent.value_ceiling': 100.0},
    'paper_2021': {'relabel.rollout_noise': 0.0, 'model.members': 1},
    'fast': FAST,
    'precise': FAST,
    'rooms': ROOMS,
}
"""
Named sets of values; ``paper`` is the authors' newest code, ``paper_2021`` that of 2021.

``precise`` is ``fast`` with a goal that is harder to hit: for policies that lead an arm. ``rooms``
is for ways around walls.
"""

DEPLOYED = ('fast', 'precise')
"""For policies that are deployed: they are trained with goals that can be reached."""

PRECISION = 0.4
"""The threshold of ``precise`` over the task's own."""

EPISODES_PER_EPOCH = {'fetch_reach': 5, 'sawyer_reach': 5, 'reacher': 15}
"""The paper's episodes an epoch; 1 elsewhere. It trains for 30 epochs."""
