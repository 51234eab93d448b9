"""
A browser without a screen, with a real mouse.

Run as a script, it ends with 0 where a browser starts, else it says what was tried.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
import contextlib
from pathlib import Path
import shutil
import sys
import time
from types import SimpleNamespace
from typing import Any, TypeVar

import imageio.v3 as imageio
from mher_ros.view.scene import FROM_THE_SIDE
import mujoco
import numpy as np
from playwright.sync_api import Error, sync_playwright
import viser

__all__ = ['Browser', 'NoBrowserError', 'Page', 'project', 'still_camera', 'wait_for']

Result = TypeVar('Result')

SIZE = (1000, 700)
"""Width and height of the window, in pixels."""

FIELD_OF_VIEW = np.radians(75.0)
"""Of viser, from top to bottom."""

PROGRAMS = ('chromium', 'google-chrome', 'google-chrome-stable', 'chromium-browser')
"""Tried in this order; playwright's own comes last."""

PATIENCE = 90.0
"""For a browser that starts, or a page that answers, beside other work [s]."""

ARGUMENTS = [
    # Tests run as root in containers.
    '--no-sandbox',
    # WebGL in software, where there is no graphics card. Naming the driver as well
    # (--use-angle=swiftshader) draws the first picture seconds later.
    '--enable-unsafe-swiftshader',
    # A page that needs another machine fails here, instead of on a robot without internet.
    '--no-proxy-server',
    '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE [::1]',
]


class NoBrowserError(RuntimeError):
    """No browser starts here; the message says what was tried."""


class Browser:
    """
    One browser; ``program`` is the path of what runs.

    playwright leaves an event loop running in the thread that it is started in, where neither
    asyncio nor rclpy could then run one of their own: it has a thread to itself.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, 'browser')
        try:
            self._playwright = self.do(lambda: sync_playwright().start())
        except Exception as error:  # of no type of its own: its driver may lack a library, too
            self._thread.shutdown()
            raise NoBrowserError(
                f'no browser starts here: playwright itself does not, {error}'
            ) from error
        try:
            self._chromium = self.do(self._launch)
        except BaseException:
            self._stop()
            raise

    def open(self, address: str) -> 'Page':
        """Return the page at ``address``, in a window of its own, with no cookies."""
        return Page(self, self.do(lambda: self._new_page(address)))

    def do(self, action: Callable[[], Result]) -> Result:
        """Return what ``action`` returns in playwright's thread."""
        return self._thread.submit(action).result()

    def close(self) -> None:
        self.do(self._chromium.close)
        self._stop()

    def _launch(self) -> Any:
        own = self._playwright.chromium.executable_path
        tried = []
        for program in filter(None, (*map(shutil.which, PROGRAMS), own)):
            if not Path(program).exists():
                continue
            try:
                browser = self._playwright.chromium.launch(
                    executable_path=program, args=ARGUMENTS, timeout=1e3 * PATIENCE
                )
            except Error as error:
                tried.append(f'{program} does not start ({error.message.splitlines()[0]})')
            else:
                self.program = program
                return browser
        none = f'there is none of {", ".join(PROGRAMS)}, nor that of playwright'
        raise NoBrowserError(f'no browser starts here: {"; ".join(tried) or none}')

    def _new_page(self, address: str) -> Any:
        width, height = SIZE
        page = self._chromium.new_page(viewport={'width': width, 'height': height})
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(address)
        return page

    def _stop(self) -> None:
        self.do(self._playwright.stop)
        self._thread.shutdown()


class Page:
    """A window of the browser. Positions are pixels from its upper left corner."""

    def __init__(self, browser: Browser, page: Any) -> None:
        self._browser, self._page = browser, page

    def __enter__(self) -> 'Page':
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def picture(self) -> np.ndarray:
        """Return what the window shows, (height, width, 3) of 0 to 255."""
        return imageio.imread(self.png())[..., :3].astype(int)

    def png(self) -> bytes:
        return self._do(lambda page: page.screenshot())

    def text(self) -> str:
        """Return the words on the page."""
        return self._do(lambda page: page.inner_text('body'))

    def framed_text(self) -> str:
        """Return the words in the page's last frame."""
        return self._do(lambda page: page.frames[-1].inner_text('body'))

    def press(self, name: str) -> None:
        """Click the button that is called ``name`` with the mouse."""
        self._do(lambda page: page.get_by_role('button', name=name, exact=True).click())

    def tick(self, name: str) -> None:
        """Click the checkbox that is called ``name`` with the mouse."""
        self._do(lambda page: page.get_by_label(name, exact=True).click())

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        return self._do(lambda page: page.evaluate(script))

    def click(self, position: Sequence[float]) -> None:
        self._do(lambda page: page.mouse.click(float(position[0]), float(position[1])))

    def move(self, position: Sequence[float], steps: int = 10) -> None:
        """Move the mouse there, in so many steps."""
        x, y = (float(number) for number in position)
        self._do(lambda page: page.mouse.move(x, y, steps=steps))

    def drag(self, start: Sequence[float], end: Sequence[float], steps: int = 10) -> None:
        """Press the mouse at ``start``, move it to ``end`` and let go."""
        with self.holding(start) as move:
            move(end, steps)

    @contextlib.contextmanager
    def holding(self, start: Sequence[float]) -> Iterator[Callable[..., None]]:
        """Press the mouse at ``start``, give a function that moves it, and let go at the end."""
        # What is under the mouse lights up before it can be grabbed: it comes from beside it.
        self.move((start[0] - 3, start[1] - 3), 1)
        self.move(start, 3)
        self._do(lambda page: page.mouse.down())
        try:
            yield self.move
        finally:
            if not self._page.is_closed():
                self._do(lambda page: page.mouse.up())

    def close(self) -> None:
        """Close the window, with no word to the page; a second call does nothing."""
        self._do(lambda page: page.close())

    def _do(self, action: Callable[[Any], Result]) -> Result:
        return self._browser.do(lambda: action(self._page))


def project(camera: viser.CameraHandle, point: Sequence[float]) -> np.ndarray:
    """Return the pixel (2,) at which a browser with ``camera`` shows ``point`` (3,) [m]."""
    w, x, y, z = camera.wxyz
    # Columns: the camera's right, down and forward.
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    right, down, forward = rotation.T @ (np.asarray(point, float) - camera.position)
    size = np.array([camera.image_width, camera.image_height])
    focal = size[1] / 2 / np.tan(camera.fov / 2)
    return size / 2 + focal * np.array([right, down]) / forward


def still_camera(window: Page, place: np.ndarray) -> Any:
    """Return the camera of a window that nobody has turned, whose page looks at ``place`` (3,)."""
    width, height = window.evaluate(
        """() => {
            const box = document.querySelector('canvas').getBoundingClientRect();
            return [box.width, box.height];
        }"""
    )
    away = np.array(FROM_THE_SIDE)
    forward = -away / np.linalg.norm(away)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    turn = np.empty(4)
    rotation = np.stack((right, np.cross(forward, right), forward), axis=1)
    mujoco.mju_mat2Quat(turn, rotation.ravel())
    return SimpleNamespace(
        position=place + away,
        wxyz=turn,
        fov=FIELD_OF_VIEW,
        image_width=width,
        image_height=height,
    )


def wait_for(condition: Callable[[], Result], timeout: float = 60.0, what: str = '') -> Result:
    """Return the first value of ``condition`` that is true, or fail after ``timeout`` [s]."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < end, f'waited {timeout:g} s in vain{what and f" for {what}"}'
        time.sleep(0.1)
    return value


if __name__ == '__main__':
    try:
        Browser().close()
    except NoBrowserError as error:
        print(error)
        sys.exit(1)
