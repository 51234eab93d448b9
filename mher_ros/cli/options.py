"""``mher options``."""

from __future__ import annotations

import argparse
import json

from mher_ros.options import describe

SUMMARY = 'list what --set can change, with the values of a preset'


def declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('task', metavar='TASK', nargs='?', default='fetch_reach')
    parser.add_argument('--algorithm', default='mher', help='default mher')
    parser.add_argument('--preset', default='fast', help='default fast')
    parser.add_argument('--json', action='store_true', help='print one JSON object')


def run(chosen: argparse.Namespace) -> None:
    from mher_ros.learning.config import make_config

    config = make_config(chosen.task, chosen.algorithm, chosen.preset)
    rows = [{'key': key, 'value': value, 'help': text} for key, value, text in describe(config)]
    if chosen.json:
        print(json.dumps({'options': rows}))
        return
    for row in rows:
        value = (
            ','.join(map(str, row['value'])) if isinstance(row['value'], tuple) else row['value']
        )
        print(f'{row["key"] + "=" + str(value):<36} {row["help"]}')
