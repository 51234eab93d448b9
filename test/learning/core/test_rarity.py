"""Maximum entropy-based prioritisation: which episodes are replayed."""

from mher_ros.learning.core.replay_buffer import Episode
from mher_ros.learning.relabel.samplers import GaussianMixture, RareEpisodeSampler, rarity_weights
import numpy as np
import pytest


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize(('like', 'steps'), [(20, 100), (6, 25), (100, 100)])
def test_the_one_path_that_is_unlike_the_rest_is_replayed_most(like, steps, seed):
    rng = np.random.default_rng(seed)
    paths = np.cumsum(rng.normal(0.0, 0.1, (like + 1, steps, 2)), axis=1)
    paths[3] += 10.0
    weights = rarity_weights(paths, rng)
    assert weights.argmax() == 3


def test_rare_paths_weigh_by_their_rank(rng):
    paths = rng.normal(size=(200, 4, 2))
    paths[8] = paths[9]
    weights = rarity_weights(paths, np.random.default_rng(1))
    # 199 different paths, ranked 0 to 198 by how unlikely they are; twins share a rank.
    flat = paths.reshape(200, 8)
    density = GaussianMixture(flat, 3, np.random.default_rng(1)).log_density(flat)
    assert np.array_equal(np.argsort(weights)[-5:], np.argsort(-density)[-5:])
    assert weights[8] == weights[9]
    ranks = 198 * weights / weights.max()
    assert np.unique(ranks) == pytest.approx(np.arange(199))
    assert weights.sum() == pytest.approx(1.0)


def test_paths_that_are_all_alike_weigh_the_same(rng):
    assert rarity_weights(np.ones((4, 5, 2)), rng) == pytest.approx([0.25] * 4)


def test_a_mixture_of_one_is_the_gaussian_of_the_values(rng):
    values = np.array([[-1.0], [1.0], [3.0]])
    mixture = GaussianMixture(values, 1, rng)
    # Mean 1, variance 8/3: log density at 1 is -0.5 ln(2 pi 8/3); at 3 it is 4 / (2 * 8/3) less.
    top = -0.5 * np.log(2 * np.pi * 8 / 3)
    assert mixture.log_density(np.array([[1.0], [3.0]])) == pytest.approx([top, top - 0.75])


def test_a_mixture_finds_two_clusters_and_their_shares(rng):
    values = np.concatenate((rng.normal(-5, 0.5, (300, 2)), rng.normal(5, 0.5, (100, 2))))
    density = GaussianMixture(values, 2, rng).log_density(np.array([[-5.0, -5], [5, 5], [0, 0]]))
    # Each entry varies by 0.25 + 100 * 0.75 * 0.25 = 19 over all values. Drawn to that with the
    # weight of two values, the clusters' variances are (300 * 0.25 + 38) / 302 = 0.374 and
    # (100 * 0.25 + 38) / 102 = 0.618; at its centre a cluster has density share / (2 pi variance).
    expected = np.log(np.array([0.75 / 0.374, 0.25 / 0.618]) / (2 * np.pi))
    assert density[:2] == pytest.approx(expected, abs=0.1)
    assert density[2] < density[1] - 20


def stay(replay, x):
    """Store an episode that stays at x."""
    path = np.stack((np.full(5, x), np.zeros(5), np.zeros(5)), 1)
    replay.add(Episode(path, np.zeros((4, 2), np.float32), np.zeros(2)))


def test_mep_draws_episodes_by_their_weights(batches, counted_replay, rng):
    source = batches(RareEpisodeSampler, seed=0)
    for x in (0.0, 1.0, 2.0):
        stay(counted_replay, x)
    source.size = 3000
    slots = source.sample(rng).slots
    paths = counted_replay.achieved_paths(source.interface)
    expected = rarity_weights(paths, np.random.default_rng([0, 5, 6]))
    assert np.bincount(slots, minlength=6) / 3000 == pytest.approx(expected, abs=0.04)
    assert len(set(expected)) > 1


def test_a_short_episode_stays_at_its_end_in_paths(counted_replay, interface):
    paths = counted_replay.achieved_paths(interface)
    assert paths.shape == (3, 5, 2)
    assert paths[2, :, 0].tolist() == [200, 201, 202, 202, 202]


def test_episodes_are_weighed_anew_when_one_was_stored(batches, counted_replay, rng):
    source = batches(RareEpisodeSampler, seed=0)
    source.sample(rng)
    stay(counted_replay, 500.0)
    source.size = 3000
    slots = source.sample(rng).slots
    paths = counted_replay.achieved_paths(source.interface)
    expected = rarity_weights(paths, np.random.default_rng([0, 5, 4]))
    assert np.bincount(slots, minlength=4) / 3000 == pytest.approx(expected, abs=0.04)
