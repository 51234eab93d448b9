"""The paper preset against the authors' code."""

from __future__ import annotations

from mher_ros.experiments.catalogue._paper import BOX_NOTE
from mher_ros.experiments.experiment import Experiment, Variant


def _point2d(algorithm: str, preset: str = 'paper') -> Variant:
    name = algorithm if preset == 'paper' else f'{algorithm} {preset}'
    return Variant(name, 'point2d_large', algorithm, preset, (('task.box', 4.0),))


EXPERIMENT = Experiment(
    'paper_point2d',
    "Does the paper preset learn as the authors' code does?",
    (_point2d('mher'), _point2d('mher', 'paper_2021'), _point2d('her'), _point2d('ddpg')),
    measures=('mean_success',),
    notes=(BOX_NOTE,),
)
