"""Figures of response times, from times made by hand."""

import os
import subprocess
import time

from mher_ros.bench.response_times import histogram, MIN_STATES, ResponseTimes, summary
from mher_ros.bench.timing import busy_cores
from mher_ros.errors import ArmError
import numpy as np
import pytest

STATES = 10_000
PERIOD = 2_000_000


def states_and_responses():
    """Return states, one each period, and answers to all but the last, 100 us + k ns later."""
    states = 10**18 + PERIOD * np.arange(STATES + 1)
    received = states[:-1] + 50_000
    return states, np.column_stack((received, received + 100_000 + np.arange(STATES)))


def test_percentiles_are_of_the_time_from_receipt_to_answer():
    states, answers = states_and_responses()
    assert summary(answers, states) == {
        'median_us': pytest.approx(104.9995),
        'p99_us': pytest.approx(109.89901),
        'p999_us': pytest.approx(109.989001),
        'answered': 1.0,
        'missed': 0,
    }


def test_states_that_are_answered_late_or_never_are_missed():
    states, answers = states_and_responses()
    answers[5, 1] += PERIOD  # when the next one is answered, too
    never = np.delete(answers, (7, 8), axis=0)
    assert summary(never, states)['missed'] == 3
    assert summary(never, states)['answered'] == pytest.approx(1.0 - 2 / STATES)


def test_answers_that_are_always_late_meet_no_deadline():
    states, answers = states_and_responses()
    answers[:, 1] += 3 * PERIOD // 2  # one in every period all the same
    assert summary(answers, states)['missed'] == STATES


def test_a_state_that_is_answered_as_the_next_one_is_published_is_missed():
    assert summary(np.array([[10, 20], [21, 29]]), [10, 20, 30])['missed'] == 1


def test_there_is_a_99_9th_percentile_of_enough_states_only():
    states, answers = states_and_responses()
    assert summary(answers, states[: MIN_STATES + 1])['p999_us'] > 104.9
    assert summary(answers, states[:MIN_STATES])['p999_us'] is None


def test_answers_before_and_after_the_states_do_not_count():
    states, answers = states_and_responses()
    answers[0, 1] += 10**9
    some = states[10:21]
    assert histogram(answers, some) == {'100': 10}
    assert summary(answers, some)['missed'] == 0


def test_a_node_that_never_answers_has_no_figures():
    with pytest.raises(ArmError, match='3 joint states'):
        summary(np.empty((0, 2), np.int64), [1, 2, 3])


def test_answers_are_counted_by_whole_microseconds():
    answers = np.array([[0, 12_999], [1, 3_001], [2, 12_003]])
    assert histogram(answers, [0, 10]) == {'3': 1, '12': 2}


def test_every_answer_is_kept_and_the_last_second_is_reported_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(time, 'time_ns', lambda: 10**9)
    noted, another = ResponseTimes(deadline=0.001), ResponseTimes(deadline=0.001)
    another.note(0)
    for received in (10**9 - 100_000, 10**9 - 300_000):
        noted.note(received)
    assert noted.figures()['median latency [us]'] == '200'
    noted.write(tmp_path / 'answers.npy')
    kept = np.load(tmp_path / 'answers.npy')
    assert kept.tolist() == [[10**9 - 100_000, 10**9], [10**9 - 300_000, 10**9]]


def test_load_keeps_each_core_busy_and_ends():
    with busy_cores() as processes:
        assert len(processes) == len(os.sched_getaffinity(0))
        deadline = time.monotonic() + 20.0
        while min(cpu_seconds(process) for process in processes) < 0.2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert all(process.returncode is not None for process in processes)


def cpu_seconds(process: subprocess.Popen) -> float:
    with open(f'/proc/{process.pid}/stat') as file:
        fields = file.read().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
