"""The paper's Figure 4: which goals systems relabel with."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'relabelling',
    'Which goals do HER, CHER and MHER relabel with, early and late in training? (Figure 4)',
    tuple(
        paper_variant(system, task, system, 'relabelled_goals')
        for task in TASKS
        for system in ('her', 'cher', 'mher')
    ),
    tasks=('point2d_large', 'reacher'),
    plot='goal_scatter',
    notes=(BOX_NOTE,),
)
