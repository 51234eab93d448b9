"""The system in which a policy is learnt on a simulated arm."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import ClassVar

from mher_ros.learning.systems import ALGORITHMS
from mher_ros.options import option, OptionError
from mher_ros.ros.bringup.browser import SAID_OF_VIEW, SAID_OF_VIEW_PORT, view_node
from mher_ros.ros.bringup.system import NodeSpec, Role, System
from mher_ros.share import share_folder
from mher_ros.view.address import PORT

__all__ = ['TrainSim']

# Named here once more because their modules import what `ros2 launch` may not have; a test
# compares them.
TASKS = ('point2d_large', 'point2d_four_room', 'fetch_reach', 'sawyer_reach', 'reacher')
PRESETS = ('paper', 'paper_2021', 'fast', 'precise', 'rooms')


@dataclasses.dataclass(frozen=True)
class TrainSim(System):
    """A learner, and a simulated arm that waits for each of its commands."""

    summary: ClassVar[str] = 'learn a policy on a simulated arm behind ROS topics'

    task: str = option('fetch_reach', 'arm and goals to learn', choices=TASKS)
    algorithm: str = option('mher', 'how to learn', choices=tuple(ALGORITHMS))
    preset: str = option('fast', "values of the learner's other choices", choices=PRESETS)
    seed: int = option(
        0,
        'where random numbers start; the same seed gives the same run',
        low=0,
        high=2**63 - 1,
    )
    steps: int = option(
        0,
        'stop after this many steps of the arm, warm-up counted; 0: as the preset says',
        low=0,
        high=2**63 - 1,
    )
    until: float = option(
        -1.0,
        'stop once this success rate holds over two evaluations; 0: never; -1: as the preset says',
        low=-1.0,
        high=1.0,
    )
    max_minutes: float = option(0.0, 'stop after this much time; 0: never', low=0.0, high=1e6)
    set: str = option('', "other choices, as 'key=value key=value'; `mher options` lists them")
    out: str = option('', 'folder of the run; empty: a new one below runs/')
    resume: bool = option(
        False, 'true: go on with the run in the folder out, with the choices it began with'
    )
    rviz: bool = option(False, 'true: show arm, goal, trail of the tool and workspace in RViz')
    view: bool = option(False, SAID_OF_VIEW)
    view_port: int = option(PORT, SAID_OF_VIEW_PORT, low=0, high=65535)
    headless: bool = option(True, "false: show the arm in MuJoCo's own window")

    def _nodes(self) -> list[NodeSpec]:
        if self.resume and not self.out:
            raise OptionError('to go on with a run, name its folder (out:=...)')
        simulation = NodeSpec(
            'mher_ros',
            'sim_node',
            'sim_node',
            Role.NEEDED,
            parameters={
                # A run that goes on goes on with its arm, even if its name was not repeated.
                'task': _task_of_run(Path(self.out).expanduser()) if self.resume else self.task,
                'stepping': 'lockstep',
                'viewer': not self.headless,
            },
        )
        learner = NodeSpec(
            'mher_ros',
            'train_node',
            'train_node',
            Role.MAIN,
            parameters={
                'task': self.task,
                'algorithm': self.algorithm,
                'preset': self.preset,
                'seed': self.seed,
                'steps': self.steps,
                'until': self.until,
                'max_minutes': self.max_minutes,
                'set': self.set,
                'out': self.out,
                'resume': self.resume,
            },
        )
        # RViz needs no TF where everything is in its fixed frame.
        frame = 'square' if self.task.startswith('point2d') else 'world'
        layout = share_folder() / 'config' / 'rviz' / 'train.rviz'
        window = NodeSpec(
            'rviz2', 'rviz2', 'rviz', Role.OPTIONAL, arguments=('-d', str(layout), '-f', frame)
        )
        page = view_node(self.view_port)
        shown = [*([window] if self.rviz else []), *([page] if self.view else [])]
        return [simulation, learner, *shown]


def _task_of_run(folder: Path) -> str:
    path = folder / 'config.json'
    try:
        task = json.loads(path.read_text())['task_name']
    except FileNotFoundError:
        raise OptionError(f'{folder} holds no run: there is no {path.name} in it') from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise OptionError(f'cannot read {path}: {error}') from error
    except (KeyError, TypeError):
        raise OptionError(f'{path} names no task') from None
    return str(task)
