"""The paper's Figure 3 (a)."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'alpha',
    'How much should the supervised loss weigh? (Figure 3 a)',
    tuple(
        paper_variant(f'alpha {alpha}', task, agent__alpha=float(alpha))
        for task in TASKS
        for alpha in (0, 1, 3, 5, 7)
    ),
    tasks=('reacher', 'sawyer_reach'),
    notes=(BOX_NOTE,),
)
