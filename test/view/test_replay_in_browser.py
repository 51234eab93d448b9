"""The page of a recorded run in a real browser."""

from threading import Event, Thread
import time

from browser import wait_for
from mher_ros.view.replay_page import ReplayPage
from mher_ros.view.run_record import RunRecord
from mher_ros.view.server import PageServer
import numpy as np
import pytest
from recorded_runs import RecordedRun

pytestmark = pytest.mark.slow

PATIENCE = 120.0
"""For a browser that draws without a graphics card beside other tests [s]."""


@pytest.fixture
def shown(tmp_path):
    """Return a run of the planar arm, and the address of its page."""
    run = RecordedRun(tmp_path / 'run', 'reacher')
    run.write_curve((40, 0.25, 0.2), (80, 0.5, 0.1), (120, 1.0, 0.05))
    run.add_episodes(3)
    server, stop = PageServer(port=0), Event()
    page = ReplayPage(server.viser, RunRecord(run.folder))

    def go_on():
        while not stop.wait(0.05):
            page.tick(time.monotonic())

    thread = Thread(target=go_on)
    thread.start()
    yield run, server.address
    stop.set()
    thread.join()
    server.close()


def left(picture):
    """Return the part of a picture beside the panel."""
    return picture[:, : picture.shape[1] * 2 // 3]


def test_a_run_is_drawn_and_read_again_as_it_goes_on(shown, browser):
    run, address = shown
    with browser.open(address) as window:
        wait_for(lambda: 'Play' in window.text(), PATIENCE, 'the button')
        wait_for(lambda: np.ptp(left(window.picture())[200:500]) > 100, PATIENCE, 'the arm')
        assert 'episode 3' in window.text().lower()
        first, before = curve_pixels(window), left(window.picture())
        assert first > 50
        run.write_curve(*((40 * n, 0.25 * (n % 4), 0.2) for n in range(1, 30)))
        wait_for(lambda: curve_pixels(window) > 1.2 * first, PATIENCE, 'a longer curve')
        run.add_episodes(1)
        wait_for(lambda: 'episode 4' in window.text().lower(), PATIENCE, 'the new episode')
        wait_for(lambda: (left(window.picture()) != before).any(-1).sum() > 300, PATIENCE, 'it')


def curve_pixels(window):
    """Return how many pixels have the colour of the success rate."""
    return (np.abs(window.picture() - np.array((0xD5, 0x5E, 0x00))).max(axis=-1) < 40).sum()
