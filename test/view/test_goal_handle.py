"""The goal's handle in the hands of several browsers, some of them ill-mannered."""

import contextlib
import queue

from browser import wait_for
from mher_ros.view import live_page
from mher_ros.view.live_page import GoalHandle
from mher_ros.view.server import PageServer
import numpy as np
from page_reader import PageReader
import pytest
from raw_browser import RawBrowser
from websockets.exceptions import ConnectionClosed

START, GOAL, OTHER = (0.5, 0.5, 0.5), (0.6, 0.5, 0.7), (0.1, 0.2, 0.3)
PATIENCE = 60.0


class Page:
    """A handle, what it told, and people at it."""

    def __init__(self):
        self.server = PageServer(port=0)
        self.goals = queue.Queue()
        self.handle = GoalHandle(self.server.viser, self.goals.put)
        self.handle.place(START)
        self._people = 0

    def person(self, kind=RawBrowser):
        """Return a browser that is known to the server."""
        browser = kind(self.server.address).__enter__()
        self._people += 1
        wait_for(lambda: len(self.server.viser.get_clients()) == self._people, PATIENCE)
        return browser

    def leave(self, browser):
        with contextlib.suppress(ConnectionClosed):
            browser.__exit__()
        self._people -= 1
        wait_for(lambda: len(self.server.viser.get_clients()) == self._people, PATIENCE)

    def place(self):
        return np.array(self.handle._handle.position)

    def wait_for_place(self, position):
        wait_for(lambda: np.allclose(self.place(), position), PATIENCE, f'{position}')

    def next_goal(self):
        return self.goals.get(timeout=PATIENCE).tolist()


@pytest.fixture
def page():
    """Return a page with a handle."""
    page = Page()
    yield page
    page.server.close()


def test_a_goal_is_told_where_the_handle_is_let_go_and_only_then(page):
    person = page.person()
    person.start()
    for place in (OTHER, START, GOAL):
        person.move(place)
    page.wait_for_place(GOAL)
    assert page.goals.empty()
    person.end()
    assert page.next_goal() == list(GOAL)
    assert page.goals.empty()


def test_a_click_tells_nothing(page):
    person = page.person()
    person.start()
    person.end()
    person.start()
    person.move(GOAL)
    person.end()
    assert page.next_goal() == list(GOAL)
    assert page.goals.empty()


def test_a_browser_that_is_lost_while_it_drags_leaves_the_handle_where_it_was(page):
    person = page.person()
    person.start()
    person.move(GOAL)
    page.wait_for_place(GOAL)
    page.leave(person)
    page.wait_for_place(START)
    assert page.goals.empty()
    another = page.person()
    another.start()
    another.move(OTHER)
    another.end()
    assert page.next_goal() == list(OTHER)


def test_one_hand_at_a_time(page):
    first, second = page.person(), page.person()
    first.start()
    first.move(GOAL)
    page.wait_for_place(GOAL)
    second.start()
    second.move(OTHER)
    second.end()
    first.end()
    assert page.next_goal() == list(GOAL)
    assert page.goals.empty()


def test_a_hand_that_rests_for_long_makes_room(page, monkeypatch):
    first, second = page.person(), page.person()
    drag_and_rest(page, first, monkeypatch)
    second.start()
    second.move(OTHER)
    second.end()
    assert page.next_goal() == list(OTHER)


def test_a_hand_that_comes_back_after_a_long_rest_finds_itself_empty(page, monkeypatch):
    first, second = page.person(), page.person()
    drag_and_rest(page, first, monkeypatch)
    first.end()
    first.move(GOAL)
    page.wait_for_place(START)
    second.start()
    second.move(OTHER)
    second.end()
    assert page.next_goal() == list(OTHER)
    assert page.goals.empty()


def drag_and_rest(page, person, monkeypatch):
    """Hold the handle still until it is put back."""
    person.start()
    person.move(GOAL)
    page.wait_for_place(GOAL)
    with monkeypatch.context() as patch:
        patch.setattr(live_page, 'IDLE', 0.0)
        page.handle.place(START)
    page.wait_for_place(START)


def test_a_handle_in_the_hand_is_not_moved(page):
    person = page.person()
    person.start()
    person.move(GOAL)
    page.wait_for_place(GOAL)
    page.handle.place(OTHER)
    assert np.allclose(page.place(), GOAL)
    person.end()
    assert page.next_goal() == list(GOAL)


def test_a_handle_that_is_hidden_is_not_in_the_hand_any_more(page):
    person = page.person()
    person.start()
    person.move(GOAL)
    page.wait_for_place(GOAL)
    page.handle.place(None)
    person.end()
    page.handle.place(OTHER)
    page.wait_for_place(OTHER)
    person.start()
    person.move(START)
    person.end()
    assert page.next_goal() == list(START)
    assert page.goals.empty()


def test_a_drag_of_a_handle_that_was_replaced_is_no_goal(page):
    person = page.person()
    page.handle.renew(7)
    person.start()
    person.move(GOAL)
    person.end()
    person.handle_name = '/goal_7'
    person.start()
    person.move(OTHER)
    person.end()
    assert page.next_goal() == list(OTHER)
    assert page.goals.empty()


def test_a_handle_that_is_replaced_while_it_is_dragged_does_not_release_the_next_one(page):
    person = page.person()
    person.start()
    person.move(GOAL)
    page.wait_for_place(GOAL)
    page.handle.renew(7)
    person.handle_name = '/goal_7'
    person.start()
    person.move(GOAL)
    person.handle_name = '/goal_0'
    person.end()
    person.handle_name = '/goal_7'
    person.move(OTHER)
    person.end()
    assert page.next_goal() == list(OTHER)
    assert page.goals.empty()


@pytest.mark.parametrize(
    'position', [(1.0, 2.0), (1.0, 2.0, 3.0, 4.0), 5.0, 'abc', (float('nan'),) * 3, (1e999, 0, 0)]
)
def test_what_is_no_position_is_no_goal_and_breaks_nothing(page, position):
    person = page.person()
    with contextlib.suppress(ConnectionClosed):  # some are sent away for it
        person.start()
        person.move(position)
        person.end()
    page.leave(person)
    another = page.person()
    another.start()
    another.move(GOAL)
    another.end()
    assert page.next_goal() == list(GOAL)
    page.handle.place(OTHER)
    page.wait_for_place(OTHER)
    assert page.goals.empty()


@pytest.mark.parametrize(
    'wxyz', [(float('nan'),) * 4, (0.0,) * 4, (0.0, 1.0, 0.0, 0.0), (1.0,), 'abc', 5.0]
)
@pytest.mark.parametrize('holds', [True, False])
def test_what_is_no_orientation_turns_the_handle_for_nobody(page, wxyz, holds):
    person, onlooker = page.person(), page.person(PageReader)
    with contextlib.suppress(ConnectionClosed):  # some are sent away for it
        if holds:
            person.start()
        person.move(OTHER, wxyz)
        person.end()
    page.leave(person)
    page.handle.place(GOAL)
    onlooker.wait_for(lambda: np.allclose(onlooker.handle['position'], GOAL), PATIENCE)
    assert onlooker.handle['wxyz'] == [1.0, 0.0, 0.0, 0.0]
