import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

import mher_ros
from mher_ros.experiments.executors import run_local
from mher_ros.experiments.jobs import attempt, Failure, RESULTS, sweep
from mher_ros.experiments.provenance import code_digest
from mher_ros.options import OptionError
import pytest
from tiny_experiment import FAILING, outcomes, TINY, tiny_jobs

SHARED = Path(__file__).parent.parent / 'shared' / 'runs'
SWEEP = f"""
from pathlib import Path
import sys
sys.path.insert(0, {str(SHARED)!r})
from mher_ros.experiments.executors import run_local
from mher_ros.experiments.jobs import sweep
from tiny_experiment import tiny_jobs

if __name__ == '__main__':
    jobs = tiny_jobs('mher', 'ddpg', seeds=(1, 2, 3))
    for job, news in sweep(jobs, Path(sys.argv[1]), lambda jobs: run_local(jobs, processes=1)):
        print(type(news).__name__, flush=True)
"""


class Counting:
    """Runs jobs one after the other, and knows which."""

    def __init__(self):
        self.jobs = []

    def __call__(self, jobs):
        self.jobs += jobs
        yield from run_local(jobs, processes=1)


def made_up(jobs):
    """Return a result at once; what is in it is not the point."""
    for job in jobs:
        yield (
            job,
            {'rows': [{'seed': job.seed}], 'record': {}, 'config': {}, 'code': code_digest()},
        )


@pytest.fixture
def folder(tmp_path):
    """Return where an experiment is kept; next to it is nothing."""
    return tmp_path / 'out' / 'tiny'


def stamps(folder):
    found = (folder / RESULTS).glob('[!.]*')
    return {path: path.stat().st_mtime_ns for path in found}


@pytest.mark.slow
def test_a_sweep_killed_half_way_goes_on_without_repeating_what_is_done(tmp_path, folder):
    script = tmp_path / 'sweep.py'
    script.write_text(SWEEP)
    with subprocess.Popen([sys.executable, script, folder], stdout=subprocess.PIPE) as killed:
        # Two have ended and are kept; a third may be anywhere.
        for _ in range(2):
            assert killed.stdout.readline() == b'dict\n'
        killed.kill()
    before = stamps(folder)
    assert 2 <= len(before) < 6
    counting = Counting()
    jobs = tiny_jobs('mher', 'ddpg', seeds=(1, 2, 3))
    found = outcomes(sweep(jobs, folder, counting))
    assert len(found) == 6
    assert len(counting.jobs) == 6 - len(before)
    after = stamps(folder)
    assert len(after) == 6
    assert before.items() <= after.items()
    # What was read is what would have been run.
    assert found == outcomes(run_local(jobs, processes=2))


def test_runs_are_kept_by_choices_seed_and_code(folder, monkeypatch):
    jobs = tiny_jobs('mher', 'ddpg')
    assert len(outcomes(sweep(jobs, folder, made_up))) == 4
    monkeypatch.setattr('mher_ros.experiments.jobs.code_digest', lambda: 'other')
    assert len({job.digest for job in jobs} | _digests(folder)) == 8
    monkeypatch.undo()
    other = tiny_jobs('mher', changes=(*TINY, ('agent.alpha', 2.0)))
    assert not {job.digest for job in other} & _digests(folder)
    assert {job.digest for job in jobs} == _digests(folder)


def test_a_run_that_a_neighbouring_experiment_has_is_not_repeated(tmp_path):
    jobs = tiny_jobs('mher', 'ddpg')
    first = outcomes(sweep(jobs, tmp_path / 'one', made_up))

    def refuse(jobs):
        raise AssertionError(jobs)

    assert outcomes(sweep(jobs, tmp_path / 'two', refuse)) == first
    assert _digests(tmp_path / 'two') == _digests(tmp_path / 'one')


def test_a_run_asked_for_by_other_code_is_refused_before_it_begins():
    (job,) = tiny_jobs('mher', seeds=(1,))
    failure = attempt(job, '1234')
    assert isinstance(failure, Failure)
    assert '1234' in failure.reason


@pytest.mark.parametrize(
    'changed',
    [
        *('learning/relabel/samplers.py', 'learning/a/new/folder.py', 'tasks/task.py'),
        *('robots/arm_model.py', 'simulation/reach.py', 'interface.py'),
    ],
)
def test_the_digest_of_the_code_changes_with_what_runs_depend_on(tmp_path, changed):
    package = tmp_path / 'mher_ros'
    shutil.copytree(Path(mher_ros.__file__).parent, package)

    def digest():
        ask = 'from mher_ros.experiments.provenance import code_digest; print(code_digest())'
        return subprocess.check_output([sys.executable, '-c', ask], cwd=tmp_path, text=True)

    before = digest()
    with (package / 'cli' / 'train.py').open('a') as file:
        file.write('# nothing that a run depends on\n')
    assert digest() == before
    (package / changed).parent.mkdir(parents=True, exist_ok=True)
    with (package / changed).open('a') as file:
        file.write('# another version\n')
    assert digest() != before


def test_a_process_that_has_done_a_run_notices_that_the_code_has_changed_since(tmp_path):
    package = tmp_path / 'mher_ros'
    shutil.copytree(Path(mher_ros.__file__).parent, package)
    script = (
        'from mher_ros.experiments.jobs import attempt, Failure, Job\n'
        'from mher_ros.experiments.provenance import code_digest\n'
        'from tiny_experiment import tiny_variant\n'
        "job, code = Job(tiny_variant('her'), 1), code_digest()\n"
        'assert not isinstance(attempt(job, code), Failure)\n'
        f"open({str(package / 'tasks' / 'reacher.py')!r}, 'a').write('# another version')\n"
        'assert code in attempt(job, code).reason\n'
    )
    shared = str(Path(__file__).parent.parent / 'shared' / 'runs')
    subprocess.run(
        [sys.executable, '-c', script],
        cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': shared},
        check=True,
    )


def test_a_failed_run_is_tried_again_the_next_time(folder):
    jobs = tiny_jobs('mher', seeds=(1,), recorder=FAILING)
    for _ in range(2):
        counting = Counting()
        list(sweep(jobs, folder, counting))
        assert counting.jobs == jobs


def test_results_are_plain_json(folder):
    (job,) = tiny_jobs('ddpg', seeds=(1,))
    ((_, result),) = sweep([job], folder, Counting())
    (path,) = stamps(folder)
    assert json.loads(path.read_text()) == result
    assert [row['env_steps'] for row in result['rows']] == [20, 30, 40]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(OptionError, match='cannot write into the folder'):
        list(sweep(tiny_jobs('ddpg'), tmp_path / 'file', made_up))


def _digests(folder):
    return {path.stem.rsplit('-', 1)[1] for path in stamps(folder)}
