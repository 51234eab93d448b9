from pathlib import Path
import subprocess
import sys
import time

from mher_ros.experiments.experiment import Experiment, run_experiment, Variant
import pytest

TINY = (
    ('agent.hidden', (16,)),
    ('model.hidden', (16,)),
    ('model.warmup_fits', 2),
    ('schedule.warmup_episodes', 1),
    ('schedule.episode_steps', 10),
    ('schedule.updates_per_episode', 1),
    ('schedule.evaluation_goals', 2),
    ('schedule.steps', 40),
    ('task.episode_steps', 10),
)


LONG = """
from pathlib import Path
import sys
from mher_ros.experiments.experiment import Experiment, run_experiment, Variant

variants = tuple(
    Variant(name, 'point2d_large', name, 'paper', (('schedule.steps', 1_000_000),))
    for name in ('her', 'ddpg')
)
experiment = Experiment('long', 'Does it end?', variants, ('mean_success',))
list(run_experiment(experiment, (1,), Path(sys.argv[1])))
"""


def children(pid):
    return [
        int(child)
        for tasks in Path(f'/proc/{pid}/task').glob('*/children')
        for child in tasks.read_text().split()
    ]


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_no_run_outlives_a_killed_experiment(tmp_path):
    with subprocess.Popen([sys.executable, '-c', LONG, str(tmp_path)]) as experiment:
        # Two runs and the tracker of their resources.
        wait_for(lambda: len(children(experiment.pid)) >= 3)
        started = children(experiment.pid)
        experiment.kill()
    wait_for(lambda: not any(Path(f'/proc/{pid}').exists() for pid in started))


@pytest.mark.slow
def test_runs_are_kept_and_not_repeated(tmp_path):
    variants = tuple(
        Variant(name, 'point2d_large', name, 'paper', TINY) for name in ('mher', 'ddpg')
    )
    experiment = Experiment('tiny', 'Does it run?', variants, ('mean_success',))
    first = {
        (v.name, seed): rows for v, seed, rows in run_experiment(experiment, (1, 2), tmp_path)
    }
    assert set(first) == {('mher', 1), ('mher', 2), ('ddpg', 1), ('ddpg', 2)}
    assert len(list(tmp_path.iterdir())) == 4
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = {
        (v.name, seed): rows for v, seed, rows in run_experiment(experiment, (1, 2), tmp_path)
    }
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == stamps
    next(tmp_path.glob('mher-seed1-*')).unlink()
    third = {
        (v.name, seed): rows for v, seed, rows in run_experiment(experiment, (1, 2), tmp_path)
    }
    wall = 'wall_seconds'
    for key, rows in third.items():
        assert [{k: v for k, v in row.items() if k != wall} for row in rows] == [
            {k: v for k, v in row.items() if k != wall} for row in first[key]
        ]
