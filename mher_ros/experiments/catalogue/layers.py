"""How deep the dynamics model is, in the paper's appendix."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'layers',
    'How many layers does the dynamics model need?',
    tuple(
        paper_variant(f'layers {layers}', task, model__hidden=(256,) * layers)
        for task in TASKS
        for layers in (1, 2, 3, 4, 5)
    ),
    tasks=('fetch_reach', 'sawyer_reach', 'reacher'),
    notes=(BOX_NOTE,),
)
