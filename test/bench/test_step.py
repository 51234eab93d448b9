"""The benchmark of steps, with few of them."""

from mher_ros.bench import step
import numpy as np
import pytest


def test_ratios_are_those_of_the_shipped_one_to_ours(monkeypatch):
    monkeypatch.setattr(step, 'STEPS', 20)
    monkeypatch.setattr(step, 'REACH_STEPS', 5)
    monkeypatch.setattr(step, 'GOALS', 2)
    monkeypatch.setattr(step, 'LENGTH', 5)
    found = step.measure(rounds=3)
    seconds = found.samples['seconds_of_1000_steps']
    ratio = np.median(seconds['FetchReach-v4']) / np.median(seconds['fetch_reach'])
    assert found.figures['ratio'] == pytest.approx(ratio)
    assert {len(values) for values in seconds.values()} == {3}
    seconds = found.samples['seconds_of_200_steps']
    ratio = np.median(seconds['fetch_reach']) / np.median(seconds['reach on fetch'])
    assert found.figures['reach_ratio'] == pytest.approx(ratio)
    assert list(seconds) == ['fetch_reach', 'reach on fetch', 'reach on fetch, randomised']
    seconds = found.samples['seconds_of_100_goals']
    ratio = np.median(seconds['FetchReach-v4 in a loop']) / np.median(seconds['all cores'])
    assert found.figures['evaluation_ratio_vs_loop'] == pytest.approx(ratio)
    low, high = found.figures['evaluation_ratio_vs_loop_interval']
    assert low <= ratio <= high
    steps, plants, goals = found.tables
    assert plants.header[-1] == 'over fetch_reach'
    assert steps.header[-1] == 'over FetchReach-v4'
    assert goals.header[-1] == 'over FetchReach-v4 in a loop'
    assert goals.rows[0][-1].startswith(f'{ratio:.2f} [')
    assert goals.rows[-1][-1] == '1.00'
