"""Theorem 1's claim."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'bound',
    'Does the return rise as the supervised loss on relabelled rows falls? (Theorem 1)',
    tuple(paper_variant('mher', task, 'mher', 'supervised_loss') for task in TASKS),
    tasks=('point2d_large', 'fetch_reach', 'reacher'),
    plot='loss_and_return',
    notes=(BOX_NOTE,),
)
