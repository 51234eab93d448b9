"""``mher view``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import signal
import sys
import threading
import time
from types import FrameType

from mher_ros.cli.argument_types import port
from mher_ros.view.address import HOST, PORT

SUMMARY = 'show a run in a browser: its curves, and its episodes to play'
TICK = 1.0 / 30.0
"""Time between two looks at what to show [s]."""


def declare(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument('run', metavar='RUN', help='folder of a run, finished or under way')
    parser.add_argument(
        '--host',
        default=HOST,
        help=f'where to serve the page (default {HOST}: this machine alone); any other takes a '
        'token, too',
    )
    parser.add_argument(
        '--port',
        type=port,
        default=PORT,
        help=f'default {PORT}; the next free one if it is taken',
    )
    parser.add_argument('--token', default='', help='word that a browser must know')
    parser.add_argument('--no-open', action='store_true', help='only print the address')
    parser.epilog = 'Ctrl-C ends it. What an arm does now is shown by `mher up SYSTEM view:=true`.'


def run(chosen: argparse.Namespace) -> int:
    with _stop_on_signal() as stop:
        # Nothing is drawn here, and MuJoCo starts sooner without what draws.
        os.environ.setdefault('MUJOCO_GL', 'disable')
        from mher_ros.view.admission import is_loopback
        from mher_ros.view.replay import ReplayPage
        from mher_ros.view.run_record import RunRecord
        from mher_ros.view.server import PageServer

        record = RunRecord(Path(chosen.run))
        server = PageServer(chosen.host, chosen.port, chosen.token, record.name)
        try:
            page = ReplayPage(server.viser, record)
            if not is_loopback(chosen.host):
                _note('anyone on the network who has the address with the token sees this run')
            if not record.episodes:
                _note('there are no recorded episodes in this run: only its curves are shown')
            print(f'{chosen.run} is shown at {server.address}', flush=True)
            if not chosen.no_open:
                _open(server.address)
            while not stop.wait(TICK):
                page.tick(time.monotonic())
        finally:
            server.close()
    return 0


@contextlib.contextmanager
def _stop_on_signal() -> Iterator[threading.Event]:
    """Yield what the first SIGINT or SIGTERM sets; the second one does what it always does."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()
        restore()

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        restore()


def _note(text: str) -> None:
    print(f'mher: {text}', file=sys.stderr, flush=True)


def _open(address: str) -> None:
    """Open a browser's window where there can be one: one in the terminal would be in the way."""
    if sys.platform == 'darwin' or os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY'):
        import webbrowser

        webbrowser.open(address)
