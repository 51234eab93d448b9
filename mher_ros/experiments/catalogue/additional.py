"""The paper's additional comparisons."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'additional',
    'Is it enough to relabel with random goals, or with noise on real ones?',
    tuple(
        paper_variant(system, task, system)
        for task in TASKS
        for system in ('mher', 'her', 'random_relabel', 'goal_noise')
    ),
    tasks=('fetch_reach', 'sawyer_reach', 'reacher'),
    notes=(BOX_NOTE,),
)
