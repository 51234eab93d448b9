"""What is told of a node's answers, from times made by hand."""

import os
import subprocess
import time

from mher_ros.bench.answer_times import AnswerTimes, ENOUGH, histogram, summary, taken_by
from mher_ros.bench.cpu_load import busy_cores
from mher_ros.errors import ArmError
import numpy as np
import pytest

STATES = 10_000
PERIOD = 2_000_000


def told_and_answered():
    """Return states, one each period, and answers to all but the last, 100 us + k ns later."""
    told = 10**18 + PERIOD * np.arange(STATES + 1)
    received = told[:-1] + 50_000
    return told, np.column_stack((received, received + 100_000 + np.arange(STATES)))


def test_percentiles_are_of_the_time_from_receipt_to_answer():
    told, answers = told_and_answered()
    assert summary(answers, told) == {
        'median_us': pytest.approx(104.9995),
        'p99_us': pytest.approx(109.89901),
        'p999_us': pytest.approx(109.989001),
        'missed': 0,
    }


def test_states_that_are_answered_late_or_never_are_missed():
    told, answers = told_and_answered()
    answers[5, 1] += PERIOD  # when the next one is answered, too
    never = np.delete(answers, (7, 8), axis=0)
    assert summary(never, told)['missed'] == 3


def test_answers_that_are_always_late_meet_no_deadline():
    told, answers = told_and_answered()
    answers[:, 1] += 3 * PERIOD // 2  # one in every period all the same
    assert summary(answers, told)['missed'] == STATES


def test_a_state_that_is_answered_as_the_next_one_is_told_is_missed():
    assert summary(np.array([[10, 20], [21, 29]]), [10, 20, 30])['missed'] == 1


def test_the_longest_thousandth_is_told_of_enough_states_only():
    told, answers = told_and_answered()
    assert summary(answers, told[: ENOUGH + 1])['p999_us'] > 104.9
    assert summary(answers, told[:ENOUGH])['p999_us'] is None


def test_answers_before_and_after_the_states_do_not_count():
    told, answers = told_and_answered()
    answers[0, 1] += 10**9
    some = told[10:21]
    assert taken_by(answers, some).tolist() == [100_000 + k for k in range(10, 20)]
    assert summary(answers, some)['missed'] == 0


def test_a_node_that_never_answers_has_no_figures():
    with pytest.raises(ArmError, match='any of 3 joint states was expected, got none'):
        summary(np.empty((0, 2), np.int64), [1, 2, 3])


def test_answers_are_counted_by_whole_microseconds():
    assert histogram(np.array([12_999, 3_000, 12_001])) == {'3': 1, '12': 2}


def test_every_answer_is_kept_and_the_last_second_told_as_before(tmp_path, monkeypatch):
    monkeypatch.setattr(time, 'time_ns', lambda: 10**9)
    noted, another = AnswerTimes(deadline=0.001), AnswerTimes(deadline=0.001)
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
