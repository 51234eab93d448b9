"""The page of an arm as browsers know it: what stands where, and what becomes of a click."""

import os
import queue
import signal
import threading
import time

from mher_ros.view.live_page import Button, Line, LivePage
from mher_ros.view.server import PageServer
from page_reader import PageReader
import pytest


class Shown:
    """A page, and how often somebody stopped."""

    def __init__(self):
        self.stops = queue.Queue()
        self.server = PageServer(port=0, stop=lambda: self.stops.put(True))
        self.page = LivePage(self.server.viser)


@pytest.fixture
def shown():
    shown = Shown()
    yield shown
    shown.server.close()


def reader_of(shown, *buttons):
    shown.page.offer(buttons)
    shown.page.say([Line('Arm', 'is there')])
    reader = PageReader(shown.server.address).__enter__()
    reader.wait_for_line('Arm', 'is there')
    return reader


def test_buttons_stand_above_the_text_and_the_stop_above_all(shown):
    reader = reader_of(shown, *reversed(Button))
    assert next(iter(reader.buttons)) == 'Stop the arm'
    stop, text = sorted(reader.order_of('GuiHtmlMessage'))
    buttons = reader.order_of('GuiButtonMessage')
    assert stop < min(buttons) and max(buttons) < text


def test_an_update_leaves_the_waking_of_browsers_to_their_thread(shown):
    # In debug mode asyncio refuses to be used from another thread. Otherwise that goes wrong
    # only now and then ("deque mutated during iteration").
    shown.server.viser.get_event_loop().set_debug(True)
    reader = reader_of(shown)
    for number in range(10):
        time.sleep(0.1)  # by then the browser waits for news
        shown.page.say([Line('Arm', f'is there {number}')])
        reader.wait_for_line('Arm', f'is there {number}')


def test_a_stop_is_done_at_once_and_waits_in_no_queue(shown):
    reader = reader_of(shown, Button.STOP)
    reader.press('Stop the arm')
    assert shown.stops.get(timeout=60)
    reader.press('Resume')
    event = shown.page.events.get(timeout=60)
    assert event.button is Button.RESUME
    assert shown.page.events.empty()


def test_no_browser_can_change_what_a_button_does(shown):
    reader = reader_of(shown, Button.RESUME)
    for updates in ({'update_cb': []}, {'removed': True}, {'value': True, 'update_cb': []}):
        reader.set('Resume', **updates)
    with PageReader(shown.server.address) as another:
        another.wait_for(lambda: 'Resume' in another.buttons)
        another.press('Resume')
        assert shown.page.events.get(timeout=60).button is Button.RESUME
    assert shown.page.events.empty()


def test_a_button_that_is_useless_now_cannot_be_pressed(shown):
    reader = reader_of(shown, Button.STOP, Button.RESUME)
    assert reader.buttons == {'Stop the arm': True, 'Resume': True}
    shown.page.offer([Button.STOP, Button.RESUME], [Button.RESUME])
    reader.wait_for(lambda: reader.buttons == {'Stop the arm': True, 'Resume': False})


def test_what_can_move_the_arm_is_replaced_in_its_place_and_tells_of_its_edition(shown):
    reader = reader_of(shown, *Button)
    before, old = list(reader.buttons), reader.uuid_of('Resume')
    shown.page.renew(3)
    reader.wait_for(lambda: reader.handle_name == '/goal_3', what='another handle')
    reader.wait_for(lambda: reader.uuid_of('Resume') != old, what='another button')
    assert list(reader.buttons) == before
    reader.tell('GuiUpdateMessage', uuid=old, updates={'value': True})
    reader.press('Resume')
    event = shown.page.events.get(timeout=60)
    assert (event.button, event.edition) == (Button.RESUME, 3)
    assert shown.page.events.empty()


def test_a_signal_that_comes_as_a_wait_for_events_runs_out_does_not_make_it_endless(shown):
    before = signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1.0))  # beyond the wait
    sender = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        sender.start()
        with pytest.raises(queue.Empty):
            shown.page.events.get(timeout=0.6)
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
