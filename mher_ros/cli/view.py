"""``mher view``."""

import argparse
import os
from pathlib import Path
import sys
import time

from mher_ros.cli.arguments import argument, Command, option, port, stop_on_signal
from mher_ros.view.access_control import HOST, PORT

TICK = 1.0 / 30.0  # time between two updates of the page [s]


def _view(chosen: argparse.Namespace) -> int:
    with stop_on_signal() as stop:
        # This process renders nothing, and MuJoCo starts faster without a renderer.
        os.environ.setdefault('MUJOCO_GL', 'disable')
        from mher_ros.view.access_control import is_loopback
        from mher_ros.view.replay_page import ReplayPage
        from mher_ros.view.run_record import RunRecord
        from mher_ros.view.server import PageServer

        record = RunRecord(Path(chosen.run))
        server = PageServer(chosen.host, chosen.port, chosen.token, record.name)
        try:
            page = ReplayPage(server.viser, record)
            if not is_loopback(chosen.host):
                _note('anyone on the network who has the address with the token can see this run')
            if not record.episodes:
                _note('this run has no recorded episodes: only its curves are shown')
            print(f'{chosen.run} is shown at {server.address}', flush=True)
            if not chosen.no_open:
                _open(server.address)
            # Not stop.wait(TICK): a signal that comes while it holds its lock would block forever.
            while not stop.is_set():
                page.tick(time.monotonic())
                time.sleep(TICK)
        finally:
            server.close()
    return 0


def _note(text: str) -> None:
    print(f'mher: {text}', file=sys.stderr, flush=True)


def _open(address: str) -> None:
    """Open a browser if there is a display; a text browser would block the terminal."""
    if sys.platform == 'darwin' or os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY'):
        import webbrowser

        webbrowser.open(address)


VIEW = Command(
    'show a run in a browser: its learning curves, and its episodes',
    _view,
    (
        argument('run', 'folder of a run, finished or in progress', metavar='RUN'),
        option('--host', HOST, 'address to serve on; if other machines reach it, give --token'),
        option('--port', PORT, 'port; if it is in use, the next free one', type=port),
        argument('--token', 'secret that becomes part of the address', default=''),
        argument('--no-open', 'only print the address', action='store_true'),
    ),
    'Ctrl-C ends it. `mher up BRINGUP view:=true` shows a running arm.',
)
