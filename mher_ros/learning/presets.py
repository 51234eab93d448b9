"""Presets, and the algorithms as changes of a preset."""

import dataclasses
from typing import Any

from mher_ros.registry import Registry

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
"""A hundredth of the predictions. A weighted mean of few candidates varies less than the best."""
QUICK: dict[str, Any] = {
    'agent.gamma': 0.95,
    'agent.target_every': 1,
    'agent.export_target_actor': True,
    'agent.alpha': 1.0,
    'relabel.steps': 2,
    'model.hidden': (128, 128),
    'model.members': 1,
    'model.fits_per_update': 1,
    'schedule.updates_per_episode': 100,
    **{f'plan.{key}': value for key, value in CHEAP_PLAN.items()},
}
FAST: dict[str, Any] = {
    **QUICK,
    'agent.hidden': (128, 128),
    'agent.relative_goal': True,
    'agent.workspace_normalisation': True,
    'agent.mask_constant_inputs': True,
    'agent.batch': 128,
    'agent.tau': 0.05,
    'relabel.goals': 'mixed',
    'schedule.episode_steps': 25,
    'schedule.warmup_episodes': 2,
    'schedule.warmup_updates': 200,
    'schedule.episodes_per_epoch': 2,
    'schedule.steps': 3000,
    'schedule.until': 0.95,
}
REACH: dict[str, Any] = {
    'agent.hidden': (256, 256),
    'agent.gamma': 0.97,
    'agent.layer_norm': True,
    'relabel.random_share': 0.5,
    'schedule.episode_steps': 20,
    'schedule.updates_per_episode': 80,
    'schedule.warmup_episodes': 3,
    'schedule.episodes_per_epoch': 10,
    'schedule.evaluation_goals': 50,
    'schedule.steps': 15_000,
}
ROOMS: dict[str, Any] = {
    **QUICK,
    'agent.hidden': (128, 128, 128),
    'agent.fourier_features': 2,
    'agent.batch': 256,
    'agent.tau': 0.02,
    'agent.critic_learning_rate': 2e-3,
    'agent.action_penalty': 0.1,
    'agent.alpha_half_life': 150.0,
    'relabel.random_share': 1.0,
    'relabel.probability': 0.5,
}
# ``paper`` follows the authors' latest code, ``paper_2021`` their code of 2021. ``precise`` is
# ``fast`` with a smaller success threshold, ``rooms`` is for tasks with walls.
PRESETS: dict[str, dict[str, Any]] = {
    'paper': {'agent.value_ceiling': 100.0},
    'paper_2021': {'relabel.rollout_noise': 0.0, 'model.members': 1},
    'fast': FAST,
    'precise': FAST,
    'rooms': ROOMS,
}

DEPLOYED = ('fast', 'precise')  # presets for deployment: they use only reachable goals
TASK_CHANGES: dict[str, dict[str, Any]] = {'reach': REACH}
"""Changes of these presets by task: actions of ``reach`` take longer, and move joints."""
PRECISION = 0.4  # success threshold of ``precise`` relative to the task's
EPISODES_PER_EPOCH = {'fetch_reach': 5, 'sawyer_reach': 5, 'reacher': 15}
"""Episodes per epoch in the paper, which trains for 30 epochs; 1 for other tasks."""


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """Changes of a preset; presets are written for MHER."""

    summary: str
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)


_ORIGINAL = {'relabel.goals': 'none', 'relabel.random_share': 0.0, 'agent.alpha': 0.0}
_FUTURE = {'relabel.goals': 'future', 'agent.alpha': 0.0}
_ALGORITHMS: dict[str, Algorithm | str] = {
    'mher': Algorithm('goals of model rollouts, policy gradient and supervised loss'),
    'ddpg': Algorithm('original goals only (Lillicrap et al. 2016)', _ORIGINAL),
    'her': Algorithm('goals achieved later in the episode (Andrychowicz et al. 2017)', _FUTURE),
    'cher': Algorithm(
        'HER with a curriculum from diverse to close goals (Fang et al. 2019)',
        {**_FUTURE, 'relabel.candidates': 2},
    ),
    'mep': Algorithm(
        'HER that replays rare trajectories more often (Zhao et al. 2019)',
        {**_FUTURE, 'agent.replay_rare': True},
    ),
    'gcsl': Algorithm(
        'supervised learning only, on future goals (Ghosh et al. 2021)',
        {**_FUTURE, 'relabel.probability': 1.0, 'agent.actor': 'imitation'},
    ),
    **{
        f'mve{steps}': Algorithm(
            f'DDPG with {steps}-step targets from the model (Feinberg et al. 2018)',
            {**_ORIGINAL, 'agent.target_steps': steps},
        )
        for steps in (3, 5, 7)
    },
    **{
        f'mbpo{steps}': Algorithm(
            f'DDPG only on model rollouts of {steps} steps (Janner et al. 2019)',
            {**_ORIGINAL, 'agent.model_batch_steps': steps},
        )
        for steps in (3, 5, 7)
    },
    'mve_her': Algorithm('mve5 with future goals', {**_FUTURE, 'agent.target_steps': 5}),
    'mbpo_her': Algorithm('mbpo5 with future goals', {**_FUTURE, 'agent.model_batch_steps': 5}),
    'plangan': Algorithm(
        'planning with a model and GANs, no policy (Charlesworth and Montana 2020)',
        {
            **_FUTURE,
            'relabel.random_share': 0.0,
            'agent.fourier_features': 0,
            'agent.workspace_normalisation': False,
            'agent.actor': 'plan',
        },
    ),
    'no_sl': Algorithm('MHER without the supervised loss', {'agent.alpha': 0.0}),
    'no_mbr': Algorithm(
        'DDPG and a separate supervised step on relabelled transitions',
        {'agent.alpha': 0.0, 'agent.actor': 'separate'},
    ),
    'random_relabel': Algorithm(
        'goals uniform in the goal space', {'relabel.goals': 'uniform', 'agent.alpha': 0.0}
    ),
    'goal_noise': Algorithm(
        'HER with noise on new goals', {**_FUTURE, 'relabel.goal_noise': 0.01}
    ),
}
ALGORITHMS: Registry[Algorithm] = Registry('algorithm', _ALGORITHMS)
