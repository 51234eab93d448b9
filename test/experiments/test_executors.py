from concurrent.futures import ThreadPoolExecutor
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys

from mher_ros.experiments.executors import run_local
from mher_ros.experiments.jobs import Failure, Lost, RETRIES
import pytest
from tiny_experiment import FAILING, LONG, outcomes, SECONDS_LONG, tiny_jobs

SHARED = Path(__file__).parent.parent / 'shared' / 'runs'
ENDLESS = f"""
import sys
sys.path.insert(0, {str(SHARED)!r})
from mher_ros.experiments.executors import run_local
from tiny_experiment import LONG, tiny_jobs

if __name__ == '__main__':
    for job, news in run_local(tiny_jobs('her', 'ddpg', seeds=(1,), changes=LONG), processes=2):
        print(job, flush=True)
"""


@pytest.fixture
def news_while_killing(at_work, wait_for):
    """Return a function that gives the news of jobs while it kills their process some times."""

    def find(killed):
        # Not any child: other tests of this process may have left servers of forks.
        workers = [worker.pid for worker in multiprocessing.active_children()]
        return [pid for pid in workers if pid not in killed and at_work(pid)]

    def kill(times):
        killed = []
        for _ in range(times):
            (pid,) = wait_for(lambda: find(killed))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    def run(jobs, times):
        with ThreadPoolExecutor(1) as thread:
            killing = thread.submit(kill, times)
            news = list(run_local(jobs, processes=1))
            killing.result()
        return news

    return run


def test_a_run_that_fails_sinks_no_other():
    bad = tiny_jobs('her', seeds=(1,), recorder=FAILING)
    good = tiny_jobs('ddpg', seeds=(1, 2))
    news = list(run_local([*bad, *good], processes=1))
    assert set(outcomes(news)) == {('ddpg', 1), ('ddpg', 2)}
    ((failed, failure),) = [one for one in news if isinstance(one[1], Failure)]
    assert failed == bad[0]
    assert 'nobody' in failure.reason
    assert 'Traceback' in failure.details


@pytest.mark.slow
def test_a_run_whose_process_is_killed_in_the_middle_is_begun_again(news_while_killing):
    jobs = tiny_jobs('her', 'ddpg', seeds=(1,), changes=SECONDS_LONG)
    expected = outcomes(run_local(jobs, processes=1))
    news = news_while_killing(jobs, 1)
    assert [type(one) for _, one in news] == [Lost, dict, dict]
    assert news[0][1].reason == 'its process was ended by signal 9'
    assert outcomes(news) == expected


@pytest.mark.slow
def test_a_run_that_kills_its_process_each_time_is_given_up(news_while_killing):
    news = news_while_killing(tiny_jobs('her', changes=SECONDS_LONG), RETRIES + 1)
    assert [type(one) for job, one in news if job.seed == 1] == [*[Lost] * RETRIES, Failure]
    assert 'signal 9, 3 times' in news[RETRIES][1].reason
    assert set(outcomes(news)) == {('her', 2)}


@pytest.mark.slow
def test_who_listens_no_more_leaves_no_run_behind():
    jobs = [*tiny_jobs('ddpg', seeds=(1,)), *tiny_jobs('her', seeds=(1,), changes=LONG)]
    news = run_local(jobs, processes=2)
    next(news)
    assert multiprocessing.active_children()
    news.close()
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_no_run_outlives_a_killed_experiment(at_work, wait_for, children, tmp_path):
    script = tmp_path / 'endless.py'
    script.write_text(ENDLESS)
    with subprocess.Popen([sys.executable, script]) as experiment:
        wait_for(lambda: sum(map(at_work, children(experiment.pid))) == 2)
        started = children(experiment.pid)
        assert len(started) >= 2
        experiment.kill()
    wait_for(lambda: not any(Path(f'/proc/{pid}').exists() for pid in started))
