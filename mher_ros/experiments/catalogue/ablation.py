"""The paper's ablation."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'ablation',
    'What do model-based relabelling and the supervised loss each bring to MHER?',
    tuple(
        paper_variant(system, task, system)
        for task in TASKS
        for system in ('mher', 'no_sl', 'no_mbr', 'her')
    ),
    tasks=('point2d_large', 'fetch_reach', 'reacher'),
    notes=(BOX_NOTE,),
)
