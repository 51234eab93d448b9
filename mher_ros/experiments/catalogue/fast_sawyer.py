"""The fast preset on Sawyer."""

from __future__ import annotations

from mher_ros.experiments.experiment import Experiment, Variant

EXPERIMENT = Experiment(
    'fast_sawyer',
    'How many environment steps does fast take to reach with Sawyer?',
    (Variant('mher', 'sawyer_reach'), Variant('her', 'sawyer_reach', 'her')),
    measures=('steps_to_95', 'early_success'),
)
