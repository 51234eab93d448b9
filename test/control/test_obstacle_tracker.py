"""Which obstacles there are, which of them move, and when their places are no longer known."""

from arm_models import load_arm
from mher_ros.control.obstacle_tracker import ObstacleError, ObstacleTracker, REGULAR
from mher_ros.robots.obstacle_slots import SLOTS
from mher_ros.robots.scene import CollisionOptions, Obstacle
from mher_ros.robots.solids import obstacle_solid
import numpy as np
import pytest

OPTIONS = CollisionOptions(enabled=True, obstacle_speed=0.2, obstacle_timeout=0.5)


@pytest.fixture(scope='module')
def slots():
    return load_arm('panda', avoids_collisions=True)[1].obstacle_slots()


@pytest.fixture
def tracker(slots):
    yield ObstacleTracker(slots, OPTIONS)
    for slot in range(SLOTS):
        slots.remove(slot)


def box(x=1.0, edge=0.1):
    return obstacle_solid(Obstacle('', 'box', (x, 0.0, 0.5), size=(edge, 0.1, 0.1)))


def margin(slots, slot, time):
    """Return the distance that the arm keeps from an obstacle if it rests at ``time`` [m]."""
    found = np.unique(slots.margins(time)[slots.pairs_of(slot)])
    assert len(found) == 1
    return found[0]


def test_an_obstacle_that_rests_needs_no_updates_and_only_the_clearance(slots, tracker):
    assert tracker.put('a/0', box(), 5.0, 5.0) == ''
    assert tracker.problem(1000.0) == ''
    assert margin(slots, 0, 1000.0) == OPTIONS.clearance
    assert tracker.put('a/0', box(1.004), 7.0, 7.0) == ''  # noise of a camera
    assert margin(slots, 0, 1000.0) == OPTIONS.clearance


def test_one_that_has_moved_may_move_on_until_the_arm_rests(slots, tracker):
    tracker.put('a/0', box(), 5.0, 5.0)
    tracker.put('a/0', box(1.02), 5.2, 5.3)
    assert margin(slots, 0, 5.6) == pytest.approx(OPTIONS.clearance + 0.2 * 0.4)
    assert tracker.problem(5.69) == ''
    assert 'a/0' in tracker.problem(5.71)  # by its stamp, not by when it was received
    tracker.put('a/0', box(1.02), 6.0, 6.0)  # known again, and moves still
    assert tracker.problem(6.1) == ''
    assert margin(slots, 0, 6.5) == pytest.approx(OPTIONS.clearance + 0.1)
    tracker.remove('a/0', 7.0)
    assert tracker.problem(9.0) == ''


def test_one_that_is_said_to_move_has_a_time_out_from_the_start(slots, tracker):
    tracker.put('moving/0', box(), 5.0, 5.0, moves=True)
    assert margin(slots, 0, 5.5) == pytest.approx(OPTIONS.clearance + 0.1)
    assert tracker.problem(5.4) == ''
    assert tracker.problem(5.6)


def test_a_sender_of_regular_updates_must_not_end(tracker):
    for update in range(REGULAR - 1):
        tracker.put('a/0', box(), 5.0, 5.0 + 0.1 * update)
    assert tracker.problem(9.0) == ''
    for update in range(REGULAR):
        tracker.put('a/0', box(), 9.0, 9.0 + 0.1 * update)
    assert tracker.problem(9.8) == ''
    assert tracker.problem(10.0)


def test_one_that_is_deleted_and_sent_again_is_another_one_after_the_time_out(slots, tracker):
    tracker.put('a/0', box(), 5.0, 5.0)
    tracker.remove('a/0', 5.1)
    tracker.put('a/0', box(1.5), 5.7, 5.7)
    assert tracker.problem(9.0) == ''
    assert margin(slots, 0, 9.0) == OPTIONS.clearance


def test_one_that_is_deleted_before_each_update_moves(slots, tracker):
    for update in range(3):
        now = 5.0 + 0.2 * update
        tracker.put('a/0', box(1.0 + 0.02 * update), now, now)
        tracker.remove('a/0', now + 0.1)
        tracker.remove('a/0', now + 0.1)
        assert tracker.problem(now + 9.0) == ''  # there is none
    tracker.put('a/0', box(1.06), 5.6, 5.6)
    assert margin(slots, 0, 6.1) == pytest.approx(OPTIONS.clearance + 0.1)
    assert tracker.problem(6.2)


def test_a_sender_that_deletes_its_obstacle_before_each_update_must_not_end(tracker):
    for update in range(REGULAR):
        tracker.remove('a/0', 5.0 + 0.2 * update)
        tracker.put('a/0', box(), 5.1 + 0.2 * update, 5.1 + 0.2 * update)
    assert tracker.problem(6.3) == ''
    assert tracker.problem(6.5)


def test_one_that_is_forgotten_is_another_one(slots, tracker):
    for forget_first in (True, False):
        tracker.put('a/0', box(), 5.0, 5.0)
        if forget_first:
            tracker.forget('a/0')
        else:
            tracker.remove('a/0', 5.0)
            tracker.forget('a/0')
        tracker.put('a/0', box(1.5), 5.1, 5.1)
        assert tracker.problem(9.0) == ''
        tracker.forget('a/0')


def test_one_whose_place_is_lost_is_known_again_with_the_next_update(tracker):
    tracker.put('a/0', box(), 5.0, 5.0)
    tracker.lose('a/0', 'no such frame')
    assert tracker.problem(5.0) == 'a/0: no such frame'
    tracker.put('a/0', box(), 5.1, 5.1)
    assert tracker.problem(5.2) == ''


@pytest.mark.parametrize('end', ['put', 'remove'])
def test_one_that_cannot_be_used_is_refused_until_it_is_sent_again_or_removed(tracker, end):
    tracker.lose('a/0', 'no such frame')
    tracker.lose('a/1', 'no such frame')
    assert tracker.problem(5.0) == ''  # there is none of that name
    assert tracker.refused == 'a/0: no such frame'
    tracker.remove('a/1', 5.0)
    assert tracker.refused
    tracker.put('a/0', box(), 5.0, 5.0) if end == 'put' else tracker.remove('a/0', 5.0)
    assert tracker.refused == ''


def test_a_faster_one_is_said(tracker):
    tracker.put('a/0', box(), 5.0, 5.0)
    assert tracker.put('a/0', box(1.019), 5.1, 5.1) == ''
    assert '0.2 m/s' in tracker.put('a/0', box(1.1), 5.2, 5.2)


def test_there_is_a_limited_number_of_them(tracker):
    for number in range(SLOTS):
        tracker.put(f'a/{number}', box(), 5.0, 5.0)
    with pytest.raises(ObstacleError) as refused:
        tracker.put('b/0', box(), 5.0, 5.0)
    assert refused.value.code == 'too_many'
    tracker.put('a/3', box(1.2), 5.1, 5.1)
    tracker.remove('a/3', 5.2)
    tracker.put('b/0', box(), 5.3, 5.3)
    assert tracker.slots['b/0'] == 3
