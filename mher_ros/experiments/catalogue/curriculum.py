"""Theorem 2's claim."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE, paper_variant
from mher_ros.experiments.experiment import Experiment
from mher_ros.tasks import TASKS

EXPERIMENT = Experiment(
    'curriculum',
    'Do virtual goals come closer to the desired ones as the policy improves? (Theorem 2)',
    tuple(
        paper_variant(system, task, system, 'goal_distance')
        for task in TASKS
        for system in ('mher', 'her')
    ),
    tasks=('point2d_large', 'fetch_reach', 'reacher'),
    plot='goal_distance',
    notes=(BOX_NOTE,),
)
