"""``mher train``, ``tasks`` and ``options``: learning, and what may be chosen for it."""

import argparse
import atexit
import dataclasses
import gc
import json
from typing import Any

from mher_ros.cli.arguments import (
    argument,
    Command,
    INTERRUPTED,
    JSON,
    SET,
    stop_on_signal,
    WORKERS,
)
from mher_ros.learning.presets import ALGORITHMS
from mher_ros.learning.run.arguments import RunArguments
from mher_ros.options import describe, option_text
from mher_ros.tasks import task_class, TASKS


def _train(chosen: argparse.Namespace) -> int:
    from mher_ros.files import POLICY
    from mher_ros.learning.run import session
    from mher_ros.learning.run.progress import Progress, TerminalDisplay
    from mher_ros.learning.run.trainer import StopReason
    from mher_ros.tasks import make

    given = {key: value for key, value in vars(chosen).items() if value is not None}
    config, folder = session.plan_arguments(given)
    if chosen.json:
        display = Progress()
    else:
        unit = make(config.task_name, config.task).interface.goal[0].unit
        display = TerminalDisplay(session.plan_text(config, folder), unit, config.schedule.steps)
    # Python's last look for garbage takes seconds with torch, and frees nothing that matters.
    atexit.register(gc.freeze)
    with stop_on_signal('\nstopping, with a checkpoint; again to stop at once\n') as stop:
        trainer, ending = session.start_training(
            folder,
            config,
            [display],
            resume=chosen.resume,
            asked_to_stop=stop.is_set,
            workers=chosen.workers,
        )
    policy = folder / POLICY
    result = {
        **(trainer.rows[-1] if trainer.rows else {}),
        'run': str(folder),
        'policy': str(policy) if policy.exists() else None,
        'ending': ending.name.lower(),
        'env_steps': trainer.env_steps,
    }
    if chosen.json:
        print(json.dumps(result, allow_nan=False))
    else:
        resume = f'mher train {config.task_name} --resume --out '
        print(*session.ending_lines(trainer, ending, config, folder, resume), sep='\n')
    return INTERRUPTED if ending is StopReason.REQUESTED else 0


def _tasks(chosen: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = []
    for name in TASKS:
        kind = task_class(name)
        settings = [
            {'key': f'task.{key}', 'default': value, 'help': text}
            for key, value, text in describe(kind.default_options)
        ]
        rows.append({'task': name, 'summary': kind.summary, 'options': settings})
    if chosen.json:
        print(json.dumps({'tasks': rows}))
        return
    for row in rows:
        print(f'{row["task"]:<18} {row["summary"]}')
        for setting in row['options']:
            default = option_text(setting['default'])
            print(f'    {setting["key"]}={default}  {setting["help"]}')


def _options(chosen: argparse.Namespace) -> None:
    from mher_ros.learning.config import make_config

    rows = describe(make_config(chosen.task, chosen.algorithm, chosen.preset))
    if chosen.json:
        listed = [dict(zip(('key', 'value', 'help'), row, strict=True)) for row in rows]
        print(json.dumps({'options': listed}))
        return
    for key, value, text in rows:
        print(f'{key + "=" + option_text(value):<36} {text}')


RUN_ARGUMENTS = tuple(
    argument(
        f'--{field.name.replace("_", "-")}',
        field.metadata['help'] + (f' (default {field.default})' if field.default else ''),
        type=type(field.default),
        metavar='DIR' if field.name == 'out' else None,
    )
    for field in dataclasses.fields(RunArguments)
    if field.name not in ('task', 'set', 'resume')
)
TRAIN = Command(
    'learn a policy and export it to policy.onnx',
    _train,
    (
        argument(
            'task',
            f'{", ".join(TASKS)}; the id of a Gymnasium GoalEnv, such as FetchPush-v4; or your '
            f'own class as module:Class (default {RunArguments().task})',
            metavar='TASK',
            nargs='?',
        ),
        *RUN_ARGUMENTS,
        argument('--resume', 'continue the run in the folder --out', action='store_true'),
        SET,
        WORKERS,
        JSON,
    ),
    'algorithms:\n' + '\n'.join(f'  {name:<16}{ALGORITHMS[name].summary}' for name in ALGORITHMS),
)
TASKS_COMMAND = Command('list the tasks and their options', _tasks, (JSON,))
OPTIONS = Command(
    'list the options that --set can change, with their values in a preset',
    _options,
    (
        argument(
            'task',
            f'task (default {RunArguments().task})',
            metavar='TASK',
            nargs='?',
            default=RunArguments().task,
        ),
        argument('--algorithm', 'algorithm (default mher)', default='mher'),
        argument('--preset', 'preset (default fast)', default='fast'),
        JSON,
    ),
)
