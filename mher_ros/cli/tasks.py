"""``mher tasks``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from mher_ros.options import describe
from mher_ros.tasks import task_class, TASKS

SUMMARY = 'list the tasks and their options'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def run(chosen: argparse.Namespace) -> None:
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
            print(f'    {setting["key"]}={setting["default"]}  {setting["help"]}')
