import itertools
import multiprocessing
from pathlib import Path
import subprocess
import sys

from mher_ros.experiments.jobs import Failure, Lost, RETRIES, Started
from mher_ros.experiments.local import run_local
import pytest
from tiny_experiment import FAILING, LONG, outcomes, SECONDS_LONG, tiny_jobs

SHARED = Path(__file__).parent.parent / 'shared'
ENDLESS = f"""
import sys
sys.path.insert(0, {str(SHARED)!r})
from mher_ros.experiments.local import run_local
from tiny_experiment import LONG, tiny_jobs

if __name__ == '__main__':
    for job, news in run_local(tiny_jobs('her', 'ddpg', seeds=(1,), changes=LONG), processes=2):
        print(job, flush=True)
"""


def kill_worker():
    (worker,) = multiprocessing.active_children()
    worker.kill()


def test_a_run_that_fails_sinks_no_other():
    bad = tiny_jobs('her', seeds=(1,), recorder=FAILING)
    good = tiny_jobs('ddpg', seeds=(1, 2))
    news = list(run_local([*bad, *good], processes=1))
    assert set(outcomes(news)) == {('ddpg', 1), ('ddpg', 2)}
    ((failed, failure),) = [one for one in news if isinstance(one[1], Failure)]
    assert failed == bad[0]
    assert failure.reason.startswith("unknown recorder 'nobody'; there are")
    assert 'Traceback' in failure.details


@pytest.mark.slow
def test_a_run_whose_process_is_killed_in_the_middle_is_begun_again(at_work, wait_for):
    jobs = tiny_jobs('her', 'ddpg', seeds=(1,), changes=SECONDS_LONG)
    expected = outcomes(run_local(jobs, processes=1))
    news = []
    lost = 0
    for job, one in run_local(jobs, processes=1):
        news.append((job, one))
        if isinstance(one, Started) and not lost:
            (worker,) = multiprocessing.active_children()
            wait_for(lambda pid=worker.pid: at_work(pid))
            kill_worker()
            lost += 1
    kinds = [type(one) for _, one in news]
    assert kinds == [Started, Lost, Started, dict, Started, dict]
    assert news[1][1].reason == 'its process was ended by signal 9'
    assert outcomes(news) == expected


@pytest.mark.slow
def test_a_run_that_kills_its_process_each_time_is_given_up():
    jobs = tiny_jobs('her', seeds=(1, 2))
    news = []
    for job, one in run_local(jobs, processes=1):
        news.append((job, one))
        if isinstance(one, Started) and job.seed == 1:
            kill_worker()
    kinds = [type(one) for job, one in news if job.seed == 1]
    assert kinds == [*itertools.chain(*[(Started, Lost)] * RETRIES), Started, Failure]
    assert 'signal 9, 3 times' in [one for _, one in news if isinstance(one, Failure)][0].reason
    assert set(outcomes(news)) == {('her', 2)}


@pytest.mark.slow
def test_who_listens_no_more_leaves_no_run_behind():
    news = run_local(tiny_jobs('her', seeds=(1, 2), changes=LONG), processes=2)
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
