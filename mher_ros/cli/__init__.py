"""
The command line: ``mher --help`` lists the commands.

Each command is a module with a ``SUMMARY``, ``declare`` (its arguments) and ``run``. What is
heavy (torch, MuJoCo, ROS) is imported inside ``run``, so that ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import os
import sys
from typing import Protocol

import mher_ros
from mher_ros.cli import (
    bench,
    clear,
    demo,
    evaluate,
    experiment,
    export,
    goal,
    options,
    render,
    robot,
    stop,
    tasks,
    train,
    up,
    view,
)
from mher_ros.cli.exit_codes import FAILED, INTERRUPTED, WRONG_USE
from mher_ros.errors import MherError

__all__ = ['main']


class Command(Protocol):
    """What a module of this package offers."""

    SUMMARY: str

    def declare(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, chosen: argparse.Namespace) -> int | None: ...


COMMANDS: dict[str, Command] = {
    'tasks': tasks,
    'train': train,
    'up': up,
    'goal': goal,
    'stop': stop,
    'clear': clear,
    'evaluate': evaluate,
    'export': export,
    'render': render,
    'robot': robot,
    'view': view,
    'options': options,
    'experiment': experiment,
    'bench': bench,
    'demo': demo,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    chosen = _parser().parse_args(arguments)
    try:
        code = int(COMMANDS[chosen.command].run(chosen) or 0)
        sys.stdout.flush()
        return code
    except MherError as error:
        print(f'mher: {error}', file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on; let the interpreter write what is left at its end to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f' ({error.filename})' if error.filename else ''
        print(f'mher: {error.strerror or error}{where}', file=sys.stderr)
        return FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='mher', description='Learn to reach with MHER, and run what was learnt.'
    )
    parser.add_argument('--version', action='version', version=mher_ros.__version__)
    parsers = parser.add_subparsers(required=True, metavar='COMMAND', dest='command')
    for name, command in COMMANDS.items():
        command.declare(
            parsers.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        )
    return parser
