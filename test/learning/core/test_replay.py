from mher_ros.learning.core.replay_buffer import Episode, EpisodeReplay
import numpy as np
import pytest


def test_a_sampled_transition_is_one_that_was_stored(counted_replay, rng):
    batch = counted_replay.sample(500, rng)
    x = batch.observations[:, 0]
    assert np.array_equal(batch.next_observations[:, 0], x + 1)
    assert np.array_equal(batch.actions[:, 0], x)
    assert np.array_equal(batch.goals[:, 0], 1000 + x // 100)


def test_every_step_of_every_episode_is_sampled(counted_replay, rng):
    x = counted_replay.sample(2000, rng).observations[:, 0]
    assert set(x) == {0, 1, 2, 3, 100, 101, 102, 103, 200, 201}


def test_episodes_are_equally_likely_whatever_their_length(counted_replay, rng):
    slots = counted_replay.sample(6000, rng).slots
    assert np.bincount(slots) / 6000 == pytest.approx([1 / 3] * 3, abs=0.03)


def test_future_observations_come_later_in_the_same_episode(counted_replay, rng):
    batch = counted_replay.sample(2000, rng)
    future = counted_replay.sample_future(batch, rng)[:, 0]
    x = batch.observations[:, 0]
    assert np.array_equal(future // 100, x // 100)
    assert (future > x).all()
    last = np.where(x >= 200, 202, 100 * (x // 100) + 4)
    assert (future <= last).all()
    assert {f - s for f, s in zip(future, x, strict=True) if s == 0} == {1, 2, 3, 4}


def test_the_oldest_episode_gives_way(rng):
    replay = EpisodeReplay(capacity=8, episode_steps=4, observation=1, action=1, goal=1)
    for number in range(3):
        replay.add(Episode(np.full((5, 1), number), np.zeros((4, 1)), np.zeros(1)))
    assert replay.episodes_held == 2
    assert len(replay) == 8
    assert set(replay.sample(200, rng).observations[:, 0]) == {1, 2}


def test_latest_draws_from_the_newest_episode_only(counted_replay, rng):
    assert len(counted_replay.sample_latest(rng).steps) == 2
    assert set(counted_replay.sample_latest(rng).observations[:, 0]) <= {200, 201}


def test_sequences_are_runs_of_one_episode(counted_replay, rng):
    observations, actions = counted_replay.sample_sequences(200, 2, rng)
    assert observations.shape == (3, 200, 3)
    assert actions.shape == (2, 200, 2)
    x = observations[:, :, 0]
    assert np.array_equal(x[1], x[0] + 1)
    assert np.array_equal(x[2], x[0] + 2)
    assert np.array_equal(actions[:, :, 0], x[:-1])


def test_state_restores_what_is_sampled(counted_replay):
    other = EpisodeReplay(capacity=40, episode_steps=4, observation=3, action=2, goal=2)
    other.load_state_dict(counted_replay.state_dict())
    one = counted_replay.sample(50, np.random.default_rng(3))
    two = other.sample(50, np.random.default_rng(3))
    assert np.array_equal(one.observations, two.observations)
    assert np.array_equal(one.goals, two.goals)
    assert other.episodes_stored == counted_replay.episodes_stored


def test_an_episode_that_is_too_long_or_empty_is_refused(counted_replay):
    for steps in (0, 5):
        with pytest.raises(ValueError, match=f'1 to 4 steps, got {steps}'):
            counted_replay.add(
                Episode(np.zeros((steps + 1, 3)), np.zeros((steps, 2)), np.zeros(2))
            )


def test_a_million_fetch_transitions_take_under_130_megabytes():
    replay = EpisodeReplay(1_000_000, 100, observation=10, action=4, goal=3)
    size = sum(value.nbytes for value in vars(replay).values() if isinstance(value, np.ndarray))
    assert size < 130e6
