"""What is looked at in a replay, and how it moves on."""

from mher_ros.learning.run.episodes import RecordedEpisode
from mher_ros.view.replay_page import Playback
import numpy as np
import pytest

PERIOD = 0.1
STEPS = 10


def episodes(*indices):
    return [
        RecordedEpisode(
            index,
            index * STEPS,
            False,
            np.zeros(2, np.float32),
            ('x',),
            np.zeros((STEPS + 1, 1), np.float32),
            np.zeros((STEPS + 1, 2), np.float32),
            np.zeros((0, 2), np.float32),
        )
        for index in indices
    ]


@pytest.fixture
def playback():
    """Return one of three episodes."""
    playback = Playback(PERIOD)
    playback.take(episodes(0, 1, 2))
    return playback


def place(playback):
    return playback.row, playback.step


def test_it_begins_at_the_end_of_the_last_episode(playback):
    assert place(playback) == (2, STEPS)
    assert not playback.is_playing


def test_without_episodes_there_is_nothing_to_play():
    playback = Playback(PERIOD)
    playback.toggle()
    playback.advance(1.0)
    assert playback.episode is None
    assert place(playback) == (0, 0)
    assert not playback.is_playing


def test_time_passes_only_while_it_plays(playback):
    playback.go_to(0, 0)
    playback.advance(0.55)
    assert place(playback) == (0, 0)
    playback.toggle()
    playback.advance(0.55)
    assert place(playback) == (0, 5)
    playback.toggle()
    playback.advance(0.55)
    assert place(playback) == (0, 5)


def test_a_period_of_the_arm_is_shorter_at_a_higher_speed(playback):
    playback.go_to(0, 0)
    playback.toggle()
    playback.speed = 2.0
    playback.advance(0.225)
    assert place(playback) == (0, 4)


def test_parts_of_a_step_add_up(playback):
    playback.go_to(0, 0)
    playback.toggle()
    for _ in range(15):
        playback.advance(PERIOD / 10.0)
    assert place(playback) == (0, 1)


def test_one_episode_follows_the_other_and_the_last_one_ends_it(playback):
    playback.go_to(1, STEPS - 1)
    playback.toggle()
    playback.advance(1.5 * PERIOD)
    assert place(playback) == (1, STEPS)
    playback.advance(PERIOD)
    assert place(playback) == (2, 0)
    assert playback.is_playing
    playback.advance(STEPS * PERIOD * 1.5)
    assert place(playback) == (2, STEPS)
    assert not playback.is_playing


def test_played_from_its_end_the_last_episode_begins_again(playback):
    playback.toggle()
    assert place(playback) == (2, 0)
    assert playback.is_playing


def test_what_does_not_exist_is_not_looked_at(playback):
    playback.go_to(7, 99)
    assert place(playback) == (2, STEPS)
    playback.go_to(-3, -1)
    assert place(playback) == (0, 0)


def test_who_looks_at_the_end_sees_what_is_added(playback):
    playback.take(episodes(0, 1, 2, 3))
    assert place(playback) == (3, STEPS)


@pytest.mark.parametrize(('kept', 'row'), [((0, 1, 2, 3, 4), 1), ((0, 2, 4), 0), ((2, 4), 0)])
def test_who_looks_at_an_earlier_one_keeps_it_or_the_one_before(playback, kept, row):
    playback.go_to(1, 4)
    playback.take(episodes(*kept))
    assert place(playback) == (row, 4)


def test_new_episodes_do_not_stop_what_plays(playback):
    playback.toggle()
    playback.advance(STEPS * PERIOD)
    playback.take(episodes(0, 1, 2, 3))
    assert place(playback) == (2, STEPS)
    playback.advance(PERIOD)
    assert place(playback) == (3, 0)
