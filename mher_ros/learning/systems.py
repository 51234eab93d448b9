"""The systems that can learn a task: MHER, its rivals, and MHER with parts left out."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ['ALGORITHMS', 'Algorithm']


@dataclasses.dataclass(frozen=True)
class Algorithm:
    """A system as a change of a preset, which is written for MHER."""

    summary: str
    changes: dict[str, Any] = dataclasses.field(default_factory=dict)


_ORIGINAL = {'relabel.goals': 'none', 'relabel.elsewhere': 0.0, 'agent.alpha': 0.0}
_FUTURE = {'relabel.goals': 'future', 'agent.alpha': 0.0}


def _expansion(steps: int) -> Algorithm:
    return Algorithm(
        f'DDPG with {steps} rewards in the target, by the model (Feinberg et al. 2018)',
        {**_ORIGINAL, 'agent.target_steps': steps},
    )


def _imagined(steps: int) -> Algorithm:
    return Algorithm(
        f'DDPG on model rollouts of {steps} steps alone (Janner et al. 2019)',
        {**_ORIGINAL, 'agent.imagined_steps': steps},
    )


ALGORITHMS: dict[str, Algorithm] = {
    'mher': Algorithm('goals of model rollouts, policy gradient and supervised loss'),
    'ddpg': Algorithm('original goals only (Lillicrap et al. 2016)', _ORIGINAL),
    'her': Algorithm('goals achieved later in the episode (Andrychowicz et al. 2017)', _FUTURE),
    'cher': Algorithm(
        'HER on rows picked for diverse, then close goals (Fang et al. 2019)',
        {**_FUTURE, 'relabel.candidates': 2},
    ),
    'mep': Algorithm(
        'HER, episodes with rare paths replayed more often (Zhao et al. 2019)',
        {**_FUTURE, 'agent.replay_rare': True},
    ),
    'gcsl': Algorithm(
        'supervised learning alone, on future goals (Ghosh et al. 2021)',
        {**_FUTURE, 'relabel.probability': 1.0, 'agent.actor': 'imitation'},
    ),
    **{f'mve{steps}': _expansion(steps) for steps in (3, 5, 7)},
    **{f'mbpo{steps}': _imagined(steps) for steps in (3, 5, 7)},
    'mve_her': Algorithm('mve5 on future goals', {**_FUTURE, 'agent.target_steps': 5}),
    'mbpo_her': Algorithm('mbpo5 under future goals', {**_FUTURE, 'agent.imagined_steps': 5}),
    'plangan': Algorithm(
        'plans with a model and GANs, no policy (Charlesworth and Montana 2020)',
        {
            **_FUTURE,
            'relabel.elsewhere': 0.0,
            'agent.waves': 0,
            'agent.workspace_units': False,
            'agent.actor': 'plan',
        },
    ),
    'no_sl': Algorithm('MHER without the supervised loss', {'agent.alpha': 0.0}),
    'no_mbr': Algorithm(
        'MHER that relabels for a supervised step apart, DDPG otherwise',
        {'agent.alpha': 0.0, 'agent.actor': 'apart'},
    ),
    'random_relabel': Algorithm(
        'goals drawn from the whole goal space', {'relabel.goals': 'random', 'agent.alpha': 0.0}
    ),
    'goal_noise': Algorithm(
        'HER with noise on its goals', {**_FUTURE, 'relabel.goal_noise': 0.01}
    ),
}
