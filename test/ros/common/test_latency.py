"""How fast a node answers, as its diagnostics tell."""

import time

from mher_ros.ros.common.diagnostics import Latency
import pytest

pytestmark = pytest.mark.ros


def test_figures_are_of_the_answers_since_the_last_look_and_misses_of_all(monkeypatch):
    monkeypatch.setattr(time, 'time_ns', lambda: 10**9)
    latency = Latency(deadline=0.001)
    for micros in (100, 300, 5000):
        latency.note(10**9 - micros * 1000)
    assert latency.figures() == {
        'median latency [us]': '300',
        'longest latency [us]': '5000',
        'deadlines missed': '1',
    }
    latency.note(10**9 - 200_000)
    assert latency.figures()['longest latency [us]'] == '200'
    assert latency.figures() == {
        'median latency [us]': '0',
        'longest latency [us]': '0',
        'deadlines missed': '1',
    }
