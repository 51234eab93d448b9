"""The fast preset on Fetch."""

from __future__ import annotations

from mher_ros.experiments.catalogue._fast import fast_variant
from mher_ros.experiments.experiment import Experiment

EXPERIMENT = Experiment(
    'fast_fetch',
    'How many environment steps does fast take to reach with Fetch?',
    (fast_variant('mher', 'fetch_reach'), fast_variant('her', 'fetch_reach', 'her')),
    measures=('steps_to_95', 'early_success'),
)
