"""
Takes the pictures of the page in this folder: ``python docs/film_page.py POLICY.onnx``.

images/page_drag.gif     a goal is dragged, and the arm follows
images/page_deploy.png   the last of these pictures
images/page_train.png    an arm while it learns

It starts the nodes and a headless chromium. Without a graphics card a picture takes a part of a
second, so the film is less smooth than the page.
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
from mher_ros.policy.onnx_policy import load
from mher_ros.robots.robot import load_robot
from mher_ros.robots.workspace import place_workspace
from mher_ros.ros.bringup.node_process import node_process
from mher_ros.view.access_control import HOST
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / 'test' / 'shared' / 'browsers'))
from browser import Browser, Page, project, still_camera, wait_for  # noqa: E402

IMAGES = ROOT / 'docs' / 'images'
ROBOT, DOMAIN = 'fetch', '99'
SPEED = 0.04
"""Speed of the arm [m/s]: slow enough to be visible with few pictures per second."""
RATE = 5.0
"""Pictures per second: what a browser without a graphics card can draw."""
PATIENCE = 120.0
"""Longest time to wait for anything [s]."""
ARROW = 0.12
"""Distance from the goal at which an arrow of the handle is grabbed [m]."""
DRAGS = ((1, -0.12), (2, 0.08), (1, 0.24))
"""Axis and length [m] of each drag."""
DRAG_PICTURES = 6
AWAY = (330.0, 600.0)
"""Position of the mouse between two drags [pixels]."""
REST = 1.5
"""Time for which the arm is filmed at its goal [s]."""
NOTE = 5.0
"""Time within which the browser reports a missing graphics card, if it does [s]."""
SLOWEST = 0.5
"""Longest time for which one picture of the film is shown [s]."""
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
"""Draws a pointer, because screenshots do not show the mouse."""
CLOSE_NOTES = """() => document.querySelectorAll('.mantine-Notification-closeButton')
    .forEach((button) => button.click())"""
"""Closes notifications, mainly the one about a missing graphics card."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument('policy', type=Path, help='of fetch_reach')
    chosen = parser.parse_args()
    # No arm of another domain or machine gets these goals.
    os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST', ROS_DOMAIN_ID=DOMAIN)
    IMAGES.mkdir(exist_ok=True)
    with contextlib.closing(Browser()) as browser:
        film_drag(browser, chosen.policy)
        take_training(browser)


def film_drag(browser: Browser, policy: Path) -> None:
    """Drag the goal several times, and film the arm."""
    space = place_workspace(load(policy).interface, load_robot(ROBOT))
    goal = (space.low + space.high) / 2.0
    # Without a graphics card the browser uses the cores that policy_node needs.
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
        for axis, length in DRAGS:
            film.take()
            along = np.eye(3)[axis]
            grip = goal + ARROW * along
            with window.holding(project(camera, grip)) as move:
                for part in np.linspace(0.0, 1.0, DRAG_PICTURES):
                    move(project(camera, grip + part * length * along), 2)
                    film.take()
            window.move(AWAY, 2)
            goal = goal + length * along
            film.take_until(lambda: not _is_reached(window), 'the arm to move')
            film.take_until(lambda: _is_reached(window), 'the arm to reach its goal')
            film.take_for(REST)
        film.write(IMAGES / 'page_drag.gif')
        (IMAGES / 'page_deploy.png').write_bytes(window.png())


def take_training(browser: Browser) -> None:
    """Take a picture of a run when its curve has some points."""
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
    """Start view_node and yield its page when the arm is drawn."""
    # With a fixed port, the page of another process could be filmed instead.
    with socket.create_server((HOST, 0)) as free:
        port = free.getsockname()[1]

    def is_served() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port)):
            return True
        return False

    with node_process('view_node', {'port': port, 'view_rate': RATE}):
        # A window that fails to open would retry and draw at the same time as the next one.
        wait_for(is_served, PATIENCE, 'view_node')
        with browser.open(f'http://{HOST}:{port}/') as window:
            wait_for(lambda: _is_drawn(window), PATIENCE, 'the arm')
            with contextlib.suppress(AssertionError):  # there is a graphics card
                wait_for(lambda: 'WebGL' in window.text(), NOTE)
            window.evaluate(CLOSE_NOTES)
            wait_for(lambda: 'WebGL' not in window.text(), PATIENCE, 'the notification to close')
            yield window


def _is_drawn(window: Page) -> bool:
    line = _line(window, 'Arm')
    return 'joint_states' in line and 'waiting' not in line


def _is_reached(window: Page) -> bool:
    return 'reached' in _line(window, 'Distance')


def _epoch(window: Page) -> int:
    return int(_line(window, 'Epoch') or 0)


def _line(window: Page, name: str) -> str:
    script = f"""() => document.querySelector('[data-line="{name}"]')?.innerText ?? ''"""
    return str(window.evaluate(script))


class Film:
    """Pictures of a window, with the times at which they were taken."""

    def __init__(self, window: Page) -> None:
        self._window = window
        self._pictures: list[np.ndarray] = []
        self._times: list[float] = []

    def take(self) -> None:
        self._pictures.append(self._window.picture()[::2, ::2].astype(np.uint8))
        self._times.append(time.monotonic())

    def take_until(self, condition: Callable[[], bool], what: str = '') -> None:
        """Take pictures until ``condition`` is true, and one more."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f'timeout while waiting for {what}'
            self.take()
        self.take()

    def take_for(self, seconds: float) -> None:
        """Take pictures for that time."""
        end = time.monotonic() + seconds
        self.take_until(lambda: time.monotonic() > end)

    def write(self, path: Path) -> None:
        waits = np.clip(np.diff(self._times, append=self._times[-1] + 2.0), 0.0, SLOWEST)
        imageio.imwrite(path, self._pictures, duration=(1000.0 * waits).tolist(), loop=0)


if __name__ == '__main__':
    main()
