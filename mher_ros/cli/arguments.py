"""Parts of commands: arguments, readers of their texts, signals, and exit codes."""

import argparse
from collections.abc import Callable, Iterator, Mapping
import contextlib
from functools import partial
import math
import os
import signal
import threading
from typing import Any, NamedTuple

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130  # exit codes other than 0

Argument = tuple[list[str], dict[str, Any]]  # arguments of ``ArgumentParser.add_argument``


class Command(NamedTuple):
    summary: str
    run: Callable[[argparse.Namespace], int | None]  # returns the exit code; None is 0
    arguments: tuple[Argument, ...] = ()
    epilog: str = ''
    commands: Mapping[str, 'Command'] = {}
    """Subcommands; if there are any, one of them is run instead."""
    metavar: str = ''  # placeholder for the name of a subcommand in the help


def argument(flags: str, text: str | None = None, **choices: Any) -> Argument:
    """Return an argument with these flags, separated by blanks, and this help text."""
    return flags.split(), {'help': text, **choices}


def option(flag: str, default: Any, text: str, **choices: Any) -> Argument:
    """Return an argument with a default, which its help shows."""
    return argument(flag, f'{text} (default {default})', default=default, **choices)


class Terminated(KeyboardInterrupt):
    """SIGTERM was received; unlike Ctrl-C in a terminal, child processes did not get it."""


@contextlib.contextmanager
def raising_terminated() -> Iterator[None]:
    """Raise Terminated for SIGTERM, so that child processes are ended as after Ctrl-C."""

    def handle(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: another would interrupt that
        raise Terminated

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def stop_on_signal(notice: str = '') -> Iterator[threading.Event]:
    """Yield an event that the first SIGINT or SIGTERM sets; the second one interrupts."""
    stop = threading.Event()

    def handle(*_: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        if notice:
            # Not print: the signal may interrupt a thread that holds its lock.
            os.write(2, notice.encode())

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f'takes a finite number, got {text!r}')
    return number


def whole_number(text: str, low: int, high: float = math.inf) -> int:
    """Read a whole number from ``low`` to ``high``."""
    try:
        value = int(text)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        bounds = f'of at least {low}' if high == math.inf else f'from {low} to {high}'
        raise argparse.ArgumentTypeError(f'takes a whole number {bounds}, got {text!r}')
    return value


positive = partial(whole_number, low=1)
seed = partial(whole_number, low=0)
port = partial(whole_number, low=0, high=65535)  # a TCP port; 0 is any free one


def positives(text: str) -> list[int]:
    return [positive(part) for part in text.split(',')]


def seeds(text: str) -> list[int]:
    """Read how many seeds, from 1 (``5``), or which (``1-5``, ``1,2,7``)."""
    if text.isdecimal():
        return list(range(1, positive(text) + 1))
    found: list[int] = []
    for part in text.split(','):
        first, _, last = part.partition('-')
        found += range(seed(first), seed(last or first) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f'takes seeds such as 5, 1-5 or 1,2,7, got {text!r}')
    return list(dict.fromkeys(found))


def seeds_argument(default: str) -> Argument:
    text = 'number of seeds, or a list: 5, 1-5, 1,2,7'
    return option('--seeds', default, text, type=seeds, metavar='N')


def names(text: str) -> list[str]:
    found = [name.strip() for name in text.split(',')]
    if not all(found):
        raise argparse.ArgumentTypeError(f'takes names such as a,b, got {text!r}')
    return found


SET = argument(
    '--set',
    'change any option, such as agent.batch=256 or task.threshold=0.02; may be repeated; '
    '`mher options` lists them',
    action='append',
    default=[],
    metavar='KEY=VALUE',
)
WORKERS = argument(
    '--workers',
    'threads of an evaluation (default: one per core, for the point tasks 1)',
    type=positive,
)
JSON = argument('--json', 'print one JSON object', action='store_true')
