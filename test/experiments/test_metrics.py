import math

from mher_ros.experiments.metrics import (
    interquartile_mean_over_tasks,
    median_over_seeds,
)
import numpy as np
import pytest


@pytest.mark.parametrize(
    ('figures', 'expected'),
    [
        ([100.0, 1, 2, 3, 4, 5, 6, -50], (2 + 3 + 4 + 5) / 4),  # two of eight go at each end
        ([0.0, 1, 2, 6, 100], 3.0),  # one of five
        ([0.0, 1, 5], 2.0),  # none of three
    ],
)
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(figures, expected):
    assert interquartile_mean_over_tasks([figures]).value == pytest.approx(expected)


def test_a_median_of_two_seeds_lies_between_them_for_sure():
    # Drawn again, two seeds give (a, a), (a, b) or (b, b), each end one time in four.
    estimate = median_over_seeds([0.2, 0.6])
    assert (estimate.value, estimate.low, estimate.high) == pytest.approx((0.4, 0.2, 0.6))


def test_the_interval_of_a_median_leaves_out_what_is_rarely_drawn():
    # The median of 11 draws is 0 only if six of them are the one 0 in 11: 1.6 times in 10,000.
    figures = [0.0, *[0.5] * 9, 1.0]
    estimate = median_over_seeds(figures)
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)


def test_what_never_happened_in_half_the_seeds_may_never_happen():
    estimate = median_over_seeds([3.0, 4.0, 5.0, math.inf, math.inf])
    assert (estimate.value, estimate.low, estimate.high) == (5.0, 3.0, math.inf)
    assert estimate.to_dict() == {'value': 5.0, 'low': 3.0, 'high': None}


def test_a_single_seed_has_no_width():
    estimate = median_over_seeds([0.3])
    assert (estimate.value, estimate.low, estimate.high) == (0.3, 0.3, 0.3)


def test_every_task_keeps_its_share_in_every_draw():
    # Seeds that agree leave nothing to chance, however much tasks differ; without strata, draws
    # of the hard task alone would reach down to 0.
    estimate = interquartile_mean_over_tasks([[0.0, 0.0], [1.0, 1.0]])
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)


def test_the_interval_over_tasks_is_that_of_the_normal_law_for_many_seeds():
    rng = np.random.default_rng(0)
    tasks = [rng.uniform(size=400) for _ in range(2)]
    estimate = interquartile_mean_over_tasks([list(runs) for runs in tasks])
    # A trimmed mean has the variance of the deviations cut at the quartiles, over n (1/2)^2: of
    # uniform figures 2 * 1/4 * (1/4)^2 + (1/2)^3 / 12 = 1/24, so 1 / 6n.
    spread = math.sqrt(1.0 / (6 * 800))
    assert estimate.value == pytest.approx(0.5, abs=3 * spread)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_the_same_runs_give_the_same_interval():
    figures = [0.1, 0.5, 0.2, 0.9, 0.4]
    assert median_over_seeds(figures) == median_over_seeds(figures)
