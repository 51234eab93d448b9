"""The paper's Figure 2."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant, PLAN_NOTE
from mher_ros.experiments.experiment import Experiment
from mher_ros.learning.systems import ALGORITHMS
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'benchmark',
    'Which system learns to reach in the fewest steps? (Figure 2)',
    tuple(paper_variant(system, task, system) for task in TASKS for system in ALGORITHMS),
    systems=('mher', 'her', 'cher', 'mep', 'gcsl', 'ddpg'),
    notes=(BOX_NOTE, PLAN_NOTE),
)
