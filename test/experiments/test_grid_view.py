from collections import Counter
import io

from mher_ros.experiments.grid_view import GridView, LineView, time_left
from mher_ros.experiments.jobs import Failure, Lost, Started
import pytest
from rich.console import Console
from tiny_experiment import tiny_jobs

RESULT = {'seconds': 60.0}


def hear(view, jobs):
    """Tell of four jobs: done before, done, failed after it was lost once, running."""
    view.hear(jobs[0], RESULT)
    for job, outcome in ((jobs[1], RESULT), (jobs[2], Lost('killed')), (jobs[3], None)):
        view.hear(job, Started())
        if outcome is not None:
            view.hear(job, outcome)
    view.hear(jobs[2], Started())
    view.hear(jobs[2], Failure('it did not work'))


def test_lines_count_the_runs_that_ended(capsys):
    jobs = tiny_jobs('mher', 'her')
    hear(LineView(jobs, 1), jobs)
    assert capsys.readouterr().err.splitlines() == [
        '   1/4  point2d_large, mher, seed 1',
        '   2/4  point2d_large, her, seed 1',
        'point2d_large, mher, seed 2: killed; begun again',
        '   3/4  point2d_large, mher, seed 2 failed: it did not work',
    ]


def test_the_grid_counts_done_running_and_failed_of_every_cell():
    jobs = tiny_jobs('mher', 'her')
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)
    view = GridView(jobs, 1, terminal)
    hear(view, jobs)
    view.close()
    shown = terminal.file.getvalue()
    last = shown[shown.rindex('point2d_large') :]
    lines = {line.split()[1]: line for line in last.splitlines() if line.startswith('│ ')}
    assert '1/2 1 failed' in lines['mher']
    assert '1/2 1 running' in lines['her']
    assert '2 of 4 runs done' in last
    assert 'about 1:00 left, 1 failed' in last
    assert 'mher, seed 2 failed: it did not work' in shown


def test_time_left_goes_by_runs_alike():
    seconds = {
        ('fetch', 'mher'): [100.0, 120.0],
        ('fetch', 'her'): [50.0],
        ('point', 'her'): [10.0],
    }
    # Two like 110 s; one on fetch takes as long as its 3 runs do, 90; one on point 10; one
    # anywhere 70; 20 s are done: 370 s on two cores.
    unfinished = Counter(
        {('fetch', 'mher'): 2, ('fetch', 'cher'): 1, ('point', 'mher'): 1, ('room', 'her'): 1}
    )
    assert time_left(unfinished, seconds, 20.0, 2) == pytest.approx((220 + 90 + 10 + 70 - 20) / 2)
    assert time_left(unfinished, {}, 0.0, 2) is None
    assert time_left(Counter(), seconds, 0.0, 2) is None
    # The last run has one core, however many there are.
    assert time_left(Counter({('point', 'her'): 1}), seconds, 4.0, 2) == pytest.approx(6.0)
