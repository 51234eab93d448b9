"""The benchmark of the page: its ratio, and a real browser."""

import os

from mher_ros.bench.page import measure, result_of
from mher_ros.bench.result import BenchError
import pytest

pytestmark = pytest.mark.ros


def turn(median, p99=1000.0, missed=0):
    return {'median_us': median, 'p99_us': p99, 'p999_us': None, 'missed': missed}


def test_the_ratio_is_that_of_the_medians_of_turns():
    summaries = {
        'open': [turn(110.0), turn(120.0), turn(400.0, missed=3)],
        'closed': [turn(100.0), turn(100.0), turn(100.0)],
    }
    found = result_of(summaries, seconds=2, samples={})
    assert found.figures['ratio'] == pytest.approx(1.2)
    (table,) = found.tables
    assert table.rows[0][:4] == ('page open', '120', '1000', '3 of 600')
    assert table.rows[1][-1] == '1.00'


def test_without_a_browser_that_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path))
    with pytest.raises(BenchError, match='chromium'):
        measure(seconds=1, rounds=1, seed=0)


@pytest.fixture
def browser_on_path(browser, tmp_path, monkeypatch):
    """Let a browser be found, wherever the one is that starts here."""
    (tmp_path / 'chromium').symlink_to(browser.program)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures('browser_on_path')
def test_a_browser_looks_while_policy_node_answers(world, policy, monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', str(world.domain))
    found = measure(seconds=2, rounds=1, seed=0, policy=str(policy))
    for state in ('open', 'closed'):
        (counts,) = found.samples[f'answers_with_the_page_{state}_by_microseconds']
        assert sum(counts.values()) > 20
        assert found.figures['turns'][state][0]['median_us'] > 0.0
