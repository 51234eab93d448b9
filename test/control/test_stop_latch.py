"""A stop lasts until it is cleared, whoever calls from wherever."""

import threading

from mher_ros.control.stop_latch import StopLatch
import pytest


@pytest.fixture
def latch():
    return StopLatch()


def test_a_new_latch_holds_nothing(latch):
    assert latch.now == (None, 0)


def test_the_first_reason_stays_until_the_stop_is_cleared(latch):
    latch.set('a person')
    latch.set('a page')
    assert latch.reason == 'a person'
    assert latch.clear()
    assert latch.reason is None
    assert not latch.clear()
    latch.set('a page')
    assert latch.reason == 'a page'


def test_a_stop_that_was_cleared_at_once_is_still_counted(latch):
    before = latch.now.stops
    latch.set('a person')
    latch.clear()
    assert latch.now == (None, before + 1)


def test_stops_and_ends_of_many_threads_are_all_counted(latch):
    ready = threading.Barrier(8)

    def press(clears):
        ready.wait()
        for _ in range(2000):
            if clears:
                latch.clear()
            else:
                latch.set('a thread')

    threads = [threading.Thread(target=press, args=(index % 2,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert latch.now.stops == 4 * 2000
    latch.clear()
    latch.set('the last')
    assert latch.now == ('the last', 4 * 2000 + 1)
