"""``mher train``."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
from pathlib import Path
import shlex
import signal
from typing import Any

from mher_ros.cli.argument_types import positive
from mher_ros.cli.exit_codes import INTERRUPTED
from mher_ros.learning.systems import ALGORITHMS
from mher_ros.options import read_changes
from mher_ros.tasks import TASKS

SUMMARY = 'learn a policy and export it to policy.onnx'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = 'algorithms:\n' + '\n'.join(
        f'  {name:<16}{algorithm.summary}' for name, algorithm in ALGORITHMS.items()
    )
    parser.add_argument('task', metavar='TASK', help=f'one of {", ".join(TASKS)}')
    parser.add_argument('--algorithm', help='one of those below (default mher)')
    parser.add_argument('--preset', help='fast (default), precise, rooms, paper or paper_2021')
    parser.add_argument('--seed', type=int, help='default 0')
    parser.add_argument(
        '--steps', type=int, metavar='N', help='stop after N environment steps, warm-up counted'
    )
    parser.add_argument(
        '--until',
        type=float,
        metavar='X',
        help='stop once success X holds over two evaluations; 0: never (default 0.95 with fast)',
    )
    parser.add_argument('--max-minutes', type=float, metavar='M', help='stop after M minutes')
    parser.add_argument('--out', metavar='DIR', help='folder of the run (default: runs/...)')
    parser.add_argument('--resume', action='store_true', help='go on with the run in --out')
    parser.add_argument(
        '--set',
        action='append',
        default=[],
        metavar='KEY=VALUE',
        help='change any other choice, e.g. agent.batch=256 or task.threshold=0.02; may be '
        'repeated; `mher options` lists them all',
    )
    parser.add_argument(
        '--workers', type=positive, help='threads that evaluate (default: cores, 1 for point2d)'
    )
    parser.add_argument('--json', action='store_true', help='print one JSON object at the end')


def run(chosen: argparse.Namespace) -> int:
    from mher_ros.learning.progress import Progress, terminal_display
    from mher_ros.learning.run import exported_text, plan_run, plan_text, start_training
    from mher_ros.learning.run_folder import MODEL, POLICY
    from mher_ros.learning.train import Ending
    from mher_ros.tasks import make

    changes = read_changes(chosen.set, '--set')
    for key in ('steps', 'until', 'max_minutes'):
        if getattr(chosen, key) is not None:
            changes[f'schedule.{key}'] = getattr(chosen, key)
    config, folder = plan_run(
        chosen.task,
        algorithm=chosen.algorithm,
        preset=chosen.preset,
        seed=chosen.seed,
        changes=changes,
        folder=None if chosen.out is None else Path(chosen.out),
        resume=chosen.resume,
    )
    if chosen.json:
        display = Progress()
    else:
        unit = make(config.task_name, config.task).interface.goal[0].unit
        display = terminal_display(plan_text(config, folder), unit, config.schedule.steps)
    # Python's last look for garbage takes seconds with torch, and frees nothing that matters.
    atexit.register(gc.freeze)
    stop = _StopOnSignal()
    try:
        trainer, ending = start_training(
            folder,
            config,
            [display],
            resume=chosen.resume,
            asked_to_stop=stop,
            workers=chosen.workers,
        )
    finally:
        stop.restore()
    policy = folder / POLICY
    result = {
        **(trainer.rows[-1] if trainer.rows else {}),
        'run': str(folder),
        'policy': str(policy) if policy.exists() else None,
        'model': str(folder / MODEL) if (folder / MODEL).exists() else None,
        'ending': ending.name.lower(),
        'env_steps': trainer.env_steps,
    }
    if chosen.json:
        print(json.dumps(result, allow_nan=False))
    else:
        print(f'stopped after {trainer.env_steps} steps: {ending.value}')
        if ending in (Ending.STEPS, Ending.TIME) and config.schedule.until:
            print(f'success {config.schedule.until:g} did not hold over two evaluations')
        where = shlex.quote(str(folder))
        if ending is not Ending.ASKED:
            print(exported_text(folder, config))
        elif trainer.agent.updates:
            print(f'policy so far: mher export {where}')
        print(f'run:    {folder}')
        if ending is Ending.ASKED:
            print(f'go on with: mher train {config.task_name} --resume --out {where}')
    return INTERRUPTED if ending is Ending.ASKED else 0


class _StopOnSignal:
    """Turns the first SIGINT or SIGTERM into a wish to stop; the second one interrupts."""

    def __init__(self) -> None:
        self._asked = False
        self._before = {
            number: signal.signal(number, self._handle)
            for number in (signal.SIGINT, signal.SIGTERM)
        }

    def __call__(self) -> bool:
        return self._asked

    def _handle(self, number: int, frame: Any) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        # Not print: whoever holds the terminal's lock may be what was interrupted.
        os.write(2, b'\nstopping, with a checkpoint; again to stop at once\n')

    def restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
