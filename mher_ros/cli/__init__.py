"""The command line; only the ``run`` of a command imports torch, MuJoCo and ROS."""

import argparse
from collections.abc import Mapping, Sequence
import os
import sys

import mher_ros
from mher_ros.cli import arm, bench, experiment, policy, train, view
from mher_ros.cli.arguments import Command, FAILED, INTERRUPTED, raising_terminated, WRONG_USE
from mher_ros.errors import explaining_missing_extras, MherError

__all__ = ['main']

COMMANDS = {
    'tasks': train.TASKS_COMMAND,
    'train': train.TRAIN,
    'up': arm.UP,
    'goal': arm.GOAL,
    'stop': arm.STOP,
    'clear': arm.CLEAR,
    'evaluate': policy.EVALUATE,
    'export': policy.EXPORT,
    'robot': policy.ROBOT,
    'view': view.VIEW,
    'options': train.OPTIONS,
    'experiment': experiment.EXPERIMENT,
    'bench': bench.BENCH,
    'demo': arm.DEMO,
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog='mher', description='Learn goal-reaching policies with MHER, and run them.'
    )
    parser.add_argument('--version', action='version', version=mher_ros.__version__)
    _declare(parser, 'COMMAND', COMMANDS)
    chosen = parser.parse_args(arguments)
    sys.path.insert(0, os.getcwd())  # for module:Class in the working folder
    try:
        with raising_terminated(), explaining_missing_extras():
            code = int(chosen.chosen_command.run(chosen) or 0)
        sys.stdout.flush()
        return code
    except MherError as error:
        print(f'mher: {error}', file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; the interpreter flushes the rest to nowhere at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        where = f' ({error.filename})' if error.filename else ''
        print(f'mher: {error.strerror or error}{where}', file=sys.stderr)
        return FAILED


def _declare(
    parser: argparse.ArgumentParser, metavar: str, commands: Mapping[str, Command]
) -> None:
    parsers = parser.add_subparsers(required=True, metavar=metavar)
    for name, command in commands.items():
        raw = argparse.RawDescriptionHelpFormatter
        one = parsers.add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=command.epilog,
            formatter_class=raw if '\n' in command.epilog else argparse.HelpFormatter,
        )
        one.set_defaults(chosen_command=command)
        for flags, choices in command.arguments:
            one.add_argument(*flags, **choices)
        if command.commands:
            _declare(one, command.metavar, command.commands)
