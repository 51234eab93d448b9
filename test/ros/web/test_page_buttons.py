"""What is asked of other nodes in which order, whatever people press when; no DDS is needed."""

from concurrent.futures import Future
import dataclasses
import math
import time
from types import SimpleNamespace

from mher_ros.ros.common.status import DeploymentStatus
from mher_ros.ros.web import page_buttons
from mher_ros.ros.web.page_buttons import PageButtons, PageGoals
from mher_ros.view.live_page import Button, Event
import numpy as np
import pytest

pytestmark = pytest.mark.ros

GOAL = np.array((1.0, 2.0, 3.0))
EDITION = 7


class Service:
    """A client of a service that answers when the test wants it to."""

    def __init__(self, name, calls):
        self.name, self._calls = name, calls
        self.is_there, self.forgotten = True, []

    def service_is_ready(self):
        return self.is_there

    def call_async(self, _):
        self.future = Future()
        self._calls.append(self.name)
        return self.future

    def remove_pending_request(self, future):
        self.forgotten.append(future)

    def answer(self, message='done'):
        self.future.set_result(SimpleNamespace(success=True, message=message))


class Desk:
    """The buttons of a page, what they led to, and what was told."""

    def __init__(self):
        self.calls, self.notes, self.offered = [], [], None
        self.policy = SimpleNamespace()
        self.tell()
        self._services = {}
        goals = SimpleNamespace(
            is_possible=True,
            send=lambda goal: self.calls.append('goal'),
            send_any=lambda: self.calls.append('goal'),
        )
        page = SimpleNamespace(offer=self._offer, notify=self.notify, renew=lambda edition: None)
        node = SimpleNamespace(create_client=self._client)
        self.buttons = PageButtons(node, page, goals, self)
        self.stop, self.tick = self.buttons.stop, self.buttons.tick
        self.clear = self._services['policy_node/clear']

    def press(self, button, at=None):
        self.answer_event(pressed(button) if at is None else pressed(button, at))

    def answer_event(self, event):
        self.buttons.answer(event)
        self.buttons.follow()

    def tell(self, sent=math.inf, **fields):
        """Let policy_node send a status, by default always a later one."""
        self.policy_sent = sent
        self.policy.latest = DeploymentStatus(goals_from=EDITION, stopped=True)
        self.policy.latest = dataclasses.replace(self.policy.latest, **fields)

    def answer(self, name, message='done'):
        self._services[name].answer(message)
        self.tick()

    def notify(self, title, text, is_good=False):
        self.notes.append((title, text))

    def _offer(self, buttons, useless):
        self.offered = {button: button not in useless for button in buttons}

    def _client(self, _, name):
        self._services[name] = Service(name, self.calls)
        return self._services[name]


def pressed(button, at=None):
    return Event(button, None, time.monotonic() if at is None else at, EDITION)


@pytest.fixture
def desk():
    return Desk()


def test_what_was_asked_for_before_a_stop_is_not_done_after_it(desk):
    now = time.monotonic()
    before = [
        pressed(Button.RESUME, now),
        pressed(Button.RANDOM_GOAL, now),
        Event(None, GOAL, now, EDITION),
        pressed(Button.RESET, now),
    ]
    desk.stop()
    for event in before:
        desk.answer_event(event)
    desk.tick()
    assert desk.calls == ['policy_node/stop']


def test_what_is_asked_for_after_a_stop_is_done(desk):
    desk.stop()
    desk.answer('policy_node/stop')
    for button in (Button.RESUME, Button.RANDOM_GOAL):
        desk.press(button)
    assert desk.calls == ['policy_node/stop', 'policy_node/clear', 'goal']


@pytest.mark.parametrize('button', [None, Button.RANDOM_GOAL, Button.RESUME])
def test_what_was_asked_for_long_ago_moves_no_arm_and_that_is_said(desk, button):
    long_ago = time.monotonic() - 1.1 * page_buttons.TOO_OLD
    desk.answer_event(Event(button, GOAL if button is None else None, long_ago, EDITION))
    assert desk.calls == []
    ((title, text),) = desk.notes
    assert title == ('No goal was sent' if button is None else button.value)
    assert 'too long ago' in text


MOVING = pytest.mark.parametrize('button', [None, Button.RANDOM_GOAL, Button.RESUME])


@MOVING
def test_what_may_move_the_arm_waits_for_a_status_that_was_sent_later(desk, button):
    now = time.monotonic()
    event = Event(button, GOAL if button is None else None, now, EDITION)
    desk.tell(sent=now - 0.1)
    desk.answer_event(event)
    assert desk.calls == []
    desk.tell()
    desk.buttons.follow()
    assert len(desk.calls) == 1
    desk.buttons.follow()
    assert len(desk.calls) == 1
    assert desk.notes == []


@MOVING
def test_what_was_asked_for_before_somebody_else_stopped_the_arm_is_not_done(desk, button):
    now = time.monotonic()
    event = Event(button, GOAL if button is None else None, now, EDITION)
    desk.tell(sent=now - 0.1)
    desk.answer_event(event)
    desk.tell(goals_from=EDITION + 1)
    desk.buttons.follow()
    desk.tell()
    desk.buttons.follow()
    assert desk.calls == []
    ((_, text),) = desk.notes
    assert 'before the last stop' in text


@MOVING
def test_nothing_moves_the_arm_while_nobody_knows_of_its_stops(desk, button):
    event = Event(button, GOAL if button is None else None, time.monotonic(), EDITION)
    desk.policy.latest = None
    desk.answer_event(event)
    desk.tell(sent=time.monotonic() - 1.1 * page_buttons.FRESH)
    desk.buttons.follow()
    assert desk.calls == []


@pytest.mark.parametrize('button', [Button.RESET, Button.SAVE, Button.STOP_TRAINING])
def test_what_moves_no_real_arm_is_done_however_late(desk, button):
    long_ago = time.monotonic() - 10.0 * page_buttons.TOO_OLD
    desk.answer_event(Event(button, None, long_ago, EDITION))
    assert desk.calls == ['/'.join(page_buttons.SERVICES[button])]


def test_a_stop_that_may_overtake_a_resume_is_repeated_once_that_is_answered(desk):
    desk.press(Button.RESUME)
    desk.stop()
    desk.stop()
    desk.answer('policy_node/stop')
    assert desk.calls == ['policy_node/clear', *['policy_node/stop'] * 2]
    desk.answer('policy_node/clear')
    assert desk.calls == ['policy_node/clear', *['policy_node/stop'] * 3]
    desk.answer('policy_node/stop')
    assert len(desk.calls) == 4


def test_a_stop_while_answers_are_looked_at_knows_of_the_resume(desk):
    desk.press(Button.RESUME)
    future = desk.clear.future
    future.done = lambda: desk.stop()  # as another thread would at this moment; not done
    desk.tick()
    del future.done
    desk.answer('policy_node/clear')
    assert desk.calls[-1] == 'policy_node/stop'
    assert len(desk.calls) == 3


def test_a_resume_after_a_repeated_stop_is_one(desk):
    desk.press(Button.RESUME)
    desk.stop()
    desk.answer('policy_node/stop')
    desk.answer('policy_node/clear')
    desk.answer('policy_node/stop')
    desk.press(Button.RESUME)
    desk.answer('policy_node/clear')
    assert desk.calls[-1] == 'policy_node/clear'


def test_a_resume_that_is_not_answered_in_time_is_followed_by_a_stop_all_the_same(
    desk, monkeypatch
):
    desk.press(Button.RESUME)
    desk.stop()
    desk.answer('policy_node/stop')
    monkeypatch.setattr(page_buttons, 'ANSWER', -1.0)
    desk.tick()
    assert ('Resume', 'no answer within -1 s') in desk.notes
    assert desk.calls == ['policy_node/clear', *['policy_node/stop'] * 2]
    desk.answer('policy_node/clear')  # it was only late
    assert desk.calls == ['policy_node/clear', *['policy_node/stop'] * 3]


def test_a_stop_after_a_resume_that_was_given_up_is_repeated_if_that_is_answered(
    desk, monkeypatch
):
    desk.press(Button.RESUME)
    with monkeypatch.context() as patch:
        patch.setattr(page_buttons, 'ANSWER', -1.0)
        desk.tick()
    desk.stop()
    desk.answer('policy_node/clear')
    assert desk.calls == ['policy_node/clear', *['policy_node/stop'] * 2]


def test_a_request_to_a_node_that_is_gone_is_forgotten(desk, monkeypatch):
    desk.press(Button.RESUME)
    for name in ('ANSWER', 'CHECK'):
        monkeypatch.setattr(page_buttons, name, -1.0)
    desk.tick()
    assert desk.clear.forgotten == []
    for service in desk._services.values():
        service.is_there = False
    desk.tick()
    assert desk.clear.forgotten == [desk.clear.future]


def test_a_page_that_cannot_tell_an_answer_loses_no_other(desk, monkeypatch):
    desk.press(Button.SAVE)
    desk.press(Button.RESUME)
    desk.stop()

    def fail(*_):
        raise RuntimeError('the browser is gone')

    with monkeypatch.context() as patch:
        patch.setattr(desk.buttons._page, 'notify', fail)
        with pytest.raises(RuntimeError):
            desk.answer('train_node/save')
    desk.answer('policy_node/clear')
    assert desk.calls[-2:] == ['policy_node/stop'] * 2
    assert [title for title, _ in desk.notes] == ['Resume']


def test_a_resume_while_the_arm_is_being_stopped_is_refused_in_words(desk):
    desk.stop()
    desk.press(Button.RESUME)
    assert desk.calls == ['policy_node/stop']
    assert desk.notes == [('Resume', 'not done: the arm is being stopped')]


@pytest.mark.parametrize('fields', [{'goal': (1.0, 2.0, 3.0)}, {'moving': True}])
def test_a_simulation_is_put_back_only_while_policy_node_does_not_move_it(desk, fields):
    desk.tell(**fields)
    desk.press(Button.RESET)
    assert desk.calls == []
    assert desk.notes == [('Reset simulation', 'not done: stop the arm first')]
    desk.tell()
    desk.press(Button.RESET)
    assert desk.calls == ['sim_node/reset']


def test_a_simulation_is_put_back_where_no_policy_node_is_known(desk):
    desk.policy.latest = None
    desk.press(Button.RESET)
    assert desk.calls == ['sim_node/reset']


@pytest.mark.parametrize('is_waiting', [True, False])
def test_a_handle_that_was_released_stays_there_until_its_goal_is_sent(is_waiting):
    placed = []
    page = SimpleNamespace(
        frame='base', goal=SimpleNamespace(place=placed.append), renew=lambda edition: None
    )
    status = DeploymentStatus('no_goal', frame='base', goal=(1.0, 2.0, 3.0))
    nodes = SimpleNamespace(policy=SimpleNamespace(latest=status))
    goals = PageGoals(SimpleNamespace(create_publisher=lambda *_: None), page, nodes)
    goals.tick(is_waiting)
    assert [list(place) for place in placed] == ([] if is_waiting else [[1.0, 2.0, 3.0]])
    nodes.policy.latest = None
    goals.tick(is_waiting)
    assert placed[-1] is None


def test_pressing_twice_asks_once(desk):
    desk.press(Button.SAVE)
    desk.press(Button.SAVE)
    assert desk.calls == ['train_node/save']


@pytest.mark.parametrize(('stopped', 'is_useful'), [(True, True), (False, False), (None, True)])
def test_resume_can_be_pressed_unless_nothing_is_known_to_be_stopped(desk, stopped, is_useful):
    desk.policy.latest = None if stopped is None else DeploymentStatus(stopped=stopped)
    desk.tick()
    assert desk.offered[Button.RESUME] is is_useful
    assert desk.offered[Button.STOP]


def test_an_answer_is_told_as_the_service_gives_it(desk):
    desk.press(Button.RESET)
    desk.answer('sim_node/reset', 'the arm is back at its start')
    assert desk.notes == [('Reset simulation', 'the arm is back at its start')]
