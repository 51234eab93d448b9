"""The paper's Figure 3 (c) and (d), and the model-based rivals of its appendix."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant, PLAN_NOTE
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'model_based',
    'Do other uses of a dynamics model learn to reach as well? (Figure 3 c, d)',
    tuple(
        paper_variant(system, task, system)
        for task in TASKS
        for system in (
            *('mher', 'mve3', 'mve5', 'mve7', 'mbpo3', 'mbpo5', 'mbpo7'),
            *('mve_her', 'mbpo_her', 'plangan'),
        )
    ),
    tasks=('point2d_large', 'sawyer_reach'),
    notes=(BOX_NOTE, PLAN_NOTE),
)
