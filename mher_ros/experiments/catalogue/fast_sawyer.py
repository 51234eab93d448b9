"""The fast preset on Sawyer."""

from __future__ import annotations

from mher_ros.experiments.catalogue._fast import fast_variant
from mher_ros.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    'fast_sawyer',
    'How many environment steps does fast take to reach with Sawyer?',
    (fast_variant('mher', 'sawyer_reach'), fast_variant('her', 'sawyer_reach', 'her')),
    measures=('steps_to_95', 'early_success'),
)
