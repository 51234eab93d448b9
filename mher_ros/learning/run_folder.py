"""
The folder of a run.

    config.json     every choice
    progress.csv    one row an evaluation
    tensorboard/    the same figures
    checkpoint      from which the run goes on; checkpoint.previous, the one before it
    episodes.npz    some of its episodes, to be looked at
    policy.onnx     what is deployed; model.onnx instead, where a learner has no policy but plans
"""

from __future__ import annotations

import json
from pathlib import Path

from mher_ros.files import read_at_most
from mher_ros.learning.config import config_from_dict, TrainConfig
from mher_ros.options import OptionError

__all__ = ['CONFIG', 'load_config', 'MODEL', 'POLICY', 'PROGRESS']

CONFIG, POLICY, PROGRESS = 'config.json', 'policy.onnx', 'progress.csv'
MODEL = 'model.onnx'
MOST_BYTES = 2**20
"""Of a configuration."""


def load_config(folder: Path) -> TrainConfig:
    """Read the choices of the run in ``folder``."""
    path = folder / CONFIG
    try:
        values = json.loads(read_at_most(path, MOST_BYTES))
    except FileNotFoundError:
        raise OptionError(f'{folder} holds no run: there is no {CONFIG} in it') from None
    except (OSError, RecursionError, ValueError) as error:
        raise OptionError(f'cannot read {path}: {error}') from error
    return config_from_dict(values)
