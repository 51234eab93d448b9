"""Turns by a clock made by hand, and ratios of what they took."""

import math

from mher_ros.bench.timing import (
    median_ratio,
    ratio_cell,
    ratio_figures,
    ratio_interval,
    take_turns,
)
import numpy as np
import pytest


def test_contestants_take_turns_and_the_first_call_of_each_is_free():
    now, calls = 0.0, []

    def contestant(name, first, others):
        def run():
            nonlocal now
            now += others if name in calls else first
            calls.append(name)

        return run

    contestants = {'slow': contestant('slow', 100.0, 2.0), 'quick': contestant('quick', 50.0, 0.5)}
    assert take_turns(contestants, 3, lambda: now) == {'slow': [2.0] * 3, 'quick': [0.5] * 3}
    assert calls == ['slow', 'quick'] * 4


def test_the_ratio_is_that_of_medians():
    samples = {'one': [3.0, 4.0, 90.0], 'other': [70.0, 2.0, 2.0]}
    assert median_ratio(samples, 'one', 'other') == 2.0
    assert median_ratio(samples, 'other', 'one') == 0.5


def test_the_interval_holds_the_ratio_and_most_ratios_of_other_rounds():
    truth, held = 1.5, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        samples = {'one': rng.normal(15.0, 1.0, 25), 'other': rng.normal(10.0, 1.0, 25)}
        low, high = ratio_interval(samples, 'one', 'other')
        assert low < median_ratio(samples, 'one', 'other') < high
        held += low <= truth <= high
    assert 88 <= held <= 100


def test_the_interval_is_the_same_every_time_and_narrows_with_rounds():
    rng = np.random.default_rng(0)
    samples = {name: rng.normal(10.0, 1.0, 160) for name in ('one', 'other')}
    few = {name: values[:10] for name, values in samples.items()}
    low, high = ratio_interval(samples, 'one', 'other')
    assert ratio_interval(samples, 'one', 'other') == (low, high)
    wide = np.diff(ratio_interval(few, 'one', 'other'))
    assert 0.0 < high - low < 0.5 * wide


def test_what_slows_both_down_in_a_round_does_not_widen_the_interval():
    slow = np.array([1.0, 5.0, 1.0, 9.0, 1.0, 7.0, 3.0])
    low, high = ratio_interval({'one': 3.0 * slow, 'other': slow}, 'one', 'other')
    assert (low, high) == pytest.approx((3.0, 3.0))


def test_rounds_that_never_end_may_make_the_interval_infinite():
    never = [2.0, 2.0, math.inf]
    sure = [4.0, 4.0, 4.0]
    assert ratio_interval({'one': never, 'other': sure}, 'one', 'other') == (0.5, math.inf)
    assert ratio_interval({'one': sure, 'other': never}, 'one', 'other') == (0.0, 2.0)
    assert ratio_interval({'one': never, 'other': never}, 'one', 'other') == (1.0, math.inf)


def test_figures_and_cells_hold_ratio_and_interval():
    samples = {'one': [3.0, 3.0], 'other': [2.0, 2.0]}
    assert ratio_figures('key', samples, 'one', 'other') == {
        'key': 1.5,
        'key_interval': [1.5, 1.5],
    }
    assert ratio_cell(samples, 'one', 'other') == '1.50 [1.50, 1.50]'
    assert ratio_cell(samples, 'one', 'one') == '1.00'
