"""
Takes the pictures of the page in this folder: ``python docs/film_page.py POLICY.onnx``.

images/page_drag.gif     a goal is dragged, and the arm follows
images/page_deploy.png   the last of these pictures
images/page_train.png    an arm that learns

It starts the nodes and Debian's chromium, without a screen. Where there is no graphics card a
picture takes a part of a second, so the film is less smooth than the page.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
import contextlib
import os
from pathlib import Path
import socket
import sys
import tempfile
import time

import imageio.v3 as imageio
from mher_ros.policy.run import load
from mher_ros.ros.deployed_arm import trained_workspace
from mher_ros.ros.node_process import node_process
from mher_ros.view.address import HOST
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'test' / 'shared'))
from browser import Browser, Page, project, still_camera, wait_for  # noqa: E402

IMAGES = ROOT / 'docs' / 'images'
ROBOT, DOMAIN = 'fetch', '99'
SPEED = 0.04
"""Of the arm [m/s]: slow enough to be seen following where few pictures a second are drawn."""
RATE = 5.0
"""Pictures in a second: what a browser without a graphics card can draw."""
PATIENCE = 120.0
"""For whatever is waited for [s]."""
ARROW = 0.12
"""Where on the handle an arrow is grabbed [m]."""
WAYS = ((1, -0.12), (2, 0.08), (1, 0.24))
"""Axis and length [m] of each drag; along the last one's arrow, so that the trail is behind it."""
DRAG_PICTURES = 6
AWAY = (330.0, 600.0)
"""Where the mouse is in nobody's way."""
REST = 1.5
"""Time for which the arm is watched at its goal [s]."""
NOTE = 5.0
"""Time within which the browser says that there is no graphics card, if it does [s]."""
SLOWEST = 0.5
"""No picture of the film stays longer [s]."""
POINTER = """() => {
    const pointer = document.createElement('div');
    pointer.style = 'position:fixed;z-index:9999;pointer-events:none;width:14px;height:14px;' +
        'margin:-7px 0 0 -7px;border:2px solid #222;border-radius:50%;background:#ffd43bcc';
    document.body.append(pointer);
    addEventListener('pointermove', (event) => {
        pointer.style.left = event.clientX + 'px';
        pointer.style.top = event.clientY + 'px';
    }, true);
}"""
"""Screenshots do not show the mouse."""
CLOSE_NOTES = """() => document.querySelectorAll('.mantine-Notification-closeButton')
    .forEach((button) => button.click())"""
"""Above all the one that says that there is no graphics card."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('policy', type=Path, help='of fetch_reach')
    chosen = parser.parse_args()
    # Goals are for the arm of this film alone.
    os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST', ROS_DOMAIN_ID=DOMAIN)
    IMAGES.mkdir(exist_ok=True)
    with contextlib.closing(Browser()) as browser:
        film_drag(browser, chosen.policy)
        take_training(browser)


def film_drag(browser: Browser, policy: Path) -> None:
    """Drag the goal three times, and watch the arm."""
    space = trained_workspace(load(policy).interface, ROBOT)
    goal = (space.low + space.high) / 2.0
    # The browser takes the time that others need, where it has no graphics card.
    parameters = {
        'robot': ROBOT,
        'policy': str(policy),
        'speed': SPEED,
        'safety.state_timeout': 1.0,
    }
    with (
        node_process('sim_node', {'robot': ROBOT}),
        node_process('policy_node', parameters),
        open_page(browser) as window,
    ):
        wait_for(lambda: 'Random goal' in window.text(), PATIENCE, 'policy_node')
        wait_for(lambda: 'there is no goal' in window.text(), PATIENCE, 'policy_node')
        window.evaluate(POINTER)
        film = Film(window)
        camera = still_camera(window, goal)
        for axis, way in WAYS:
            film.take()
            along = np.eye(3)[axis]
            grip = goal + ARROW * along
            with window.holding(project(camera, grip)) as move:
                for part in np.linspace(0.0, 1.0, DRAG_PICTURES):
                    move(project(camera, grip + part * way * along), 2)
                    film.take()
            window.move(AWAY, 2)
            goal = goal + way * along
            film.take_until(lambda: not _is_reached(window), 'the arm to be on its way')
            film.take_until(lambda: _is_reached(window), 'the arm to be there')
            film.take_for(REST)
        film.write(IMAGES / 'page_drag.gif')
        (IMAGES / 'page_deploy.png').write_bytes(window.png())


def take_training(browser: Browser) -> None:
    """Show a run once its curve has some points."""
    with tempfile.TemporaryDirectory() as folder:
        parameters = {
            'task': 'fetch_reach',
            'preset': 'precise',
            'seed': 1,
            'out': f'{folder}/run',
            'set': 'schedule.until=0 schedule.evaluation_goals=25',
        }
        with (
            node_process('sim_node', {'task': 'fetch_reach', 'stepping': 'lockstep'}),
            node_process('train_node', parameters),
            open_page(browser) as window,
        ):
            wait_for(lambda: _epoch(window) >= 5, 5.0 * PATIENCE, 'five evaluations')
            wait_for(lambda: 'learning' in window.text(), PATIENCE, 'updates')
            (IMAGES / 'page_train.png').write_bytes(window.png())


@contextlib.contextmanager
def open_page(browser: Browser):
    """Start view_node and give its page, once the arm is on it."""
    # Another's page, at a port that is always the same, would be filmed instead.
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]

    def is_served() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port)):
            return True
        return False

    with node_process('view_node', {'port': port, 'view_rate': RATE}):
        # Not by trying to open it: a window that failed would try again, and draw beside another.
        wait_for(is_served, PATIENCE, 'view_node')
        with browser.open(f'http://{HOST}:{port}/') as window:
            wait_for(lambda: 'as joint_states tells' in window.text(), PATIENCE, 'the arm')
            with contextlib.suppress(AssertionError):  # there is a graphics card
                wait_for(lambda: 'WebGL' in window.text(), NOTE)
            window.evaluate(CLOSE_NOTES)
            wait_for(lambda: 'WebGL' not in window.text(), PATIENCE, 'the note to go')
            yield window


def _is_reached(window: Page) -> bool:
    return 'reached' in _line(window, 'Distance')


def _epoch(window: Page) -> int:
    return int(_line(window, 'Epoch') or 0)


def _line(window: Page, name: str) -> str:
    script = f"""() => document.querySelector('[data-line="{name}"]')?.innerText ?? ''"""
    return str(window.evaluate(script))


class Film:
    """Pictures of a window, and when they were taken."""

    def __init__(self, window: Page) -> None:
        self._window = window
        self._pictures: list[np.ndarray] = []
        self._times: list[float] = []

    def take(self) -> None:
        self._pictures.append(self._window.picture()[::2, ::2].astype(np.uint8))
        self._times.append(time.monotonic())

    def take_until(self, condition: Callable[[], bool], what: str = '') -> None:
        """Take pictures until it holds, one of them then."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f'waited in vain for {what}'
            self.take()
        self.take()

    def take_for(self, seconds: float) -> None:
        """Take pictures for a while."""
        end = time.monotonic() + seconds
        self.take_until(lambda: time.monotonic() > end)

    def write(self, path: Path) -> None:
        waits = np.clip(np.diff(self._times, append=self._times[-1] + 2.0), 0.0, SLOWEST)
        imageio.imwrite(path, self._pictures, duration=(1000.0 * waits).tolist(), loop=0)


if __name__ == '__main__':
    main()
