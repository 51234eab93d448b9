"""The paper's Figure 3 (b)."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'steps',
    'How long should a model rollout be? (Figure 3 b)',
    tuple(
        paper_variant(f'n {steps}', task, relabel__steps=steps)
        for task in TASKS
        for steps in (0, 1, 3, 5, 7)
    ),
    tasks=('reacher', 'sawyer_reach'),
    notes=(BOX_NOTE,),
)
