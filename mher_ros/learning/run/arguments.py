"""What a user chooses for a run, declared once, and what a run has stored of it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from mher_ros.files import CONFIG, read_at_most
from mher_ros.learning.presets import ALGORITHMS, PRESETS
from mher_ros.options import option, OptionError

MAX_CONFIG_BYTES = 2**20
# Copies, because `ros2 launch` may run without what mher_ros.tasks imports; a test compares them.
TASKS = ('point2d_large', 'point2d_four_room', 'fetch_reach', 'sawyer_reach', 'reacher', 'reach')
REACH, ROBOT = 'reach', 'fetch'  # the task of robots, and the robot of its options


@dataclasses.dataclass(frozen=True)
class RunArguments:
    """Arguments of a run: of ``mher train``, of the launch files, and parameters of train_node."""

    task: str = option(REACH, 'task to learn', choices=TASKS)
    robot: str = option(
        '',
        'arm of the task reach: a name from config/robots, or the path of a YAML file; empty: '
        f'{ROBOT}',
    )
    algorithm: str = option('mher', 'learning algorithm', choices=tuple(ALGORITHMS))
    preset: str = option(
        'fast', f'values of the other options: {", ".join(PRESETS)}', choices=tuple(PRESETS)
    )
    seed: int = option(
        0, 'seed of random numbers; the same seed gives the same run', low=0, high=2**63 - 1
    )
    steps: int = option(
        0,
        'stop after this many environment steps, warm-up included; 0: as the preset says',
        low=0,
        high=2**63 - 1,
    )
    until: float = option(
        -1.0,
        'stop when two successive evaluations reach this success rate; 0: never; '
        '-1: as the preset says',
        low=-1.0,
        high=1.0,
    )
    max_minutes: float = option(0.0, 'stop after this time [min]; 0: never', low=0.0, high=1e6)
    set: str = option('', "other options, as 'key=value key=value'; `mher options` lists them")
    out: str = option('', 'folder of the run; empty: a new one below runs/')
    resume: bool = option(False, 'true: continue the run in the folder out, with its own options')


def read_config(folder: Path) -> Any:
    """Return the content of a run's ``config.json``, which nothing has checked yet."""
    path = folder / CONFIG
    try:
        return json.loads(read_at_most(path, MAX_CONFIG_BYTES))
    except FileNotFoundError:
        raise OptionError(f'{folder} holds no run: there is no {CONFIG} in it') from None
    except (OSError, RecursionError, ValueError) as error:
        raise OptionError(f'cannot read {path}: {error}') from error
