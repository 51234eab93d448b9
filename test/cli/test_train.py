"""``mher train``, as a person or a script meets it."""

import json
import os
from pathlib import Path
import re
import resource
import signal
import subprocess
import sys
import time

from cli_runs import figures, TINY, TINY_TRAINING
from mher_ros.cli import main
from mher_ros.files import CONFIG, POLICY
from mher_ros.learning.presets import ALGORITHMS
from mher_ros.learning.run.session import plan_arguments
from mher_ros.tasks import TASKS
import pytest


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['fetch'], "unknown task 'fetch'; there are " + ', '.join(TASKS)),
        (
            ['point2d_large', '--algorithm', 'sac'],
            "unknown algorithm 'sac'; there are " + ', '.join(ALGORITHMS),
        ),
        (
            ['point2d_large', '--preset', 'slow'],
            "unknown preset 'slow'; there are paper, paper_2021, fast, precise, rooms",
        ),
        (['point2d_large', '--set', 'agent.batch'], "set takes key=value, got 'agent.batch'"),
        (['point2d_large', '--set', '=3'], "set takes key=value, got '=3'"),
        (
            ['point2d_large', '--set', 'agent.batch=0'],
            'agent.batch must be at least 1 and at most 65536, got 0',
        ),
        (
            ['point2d_large', '--set', 'agent.batch=big'],
            "agent.batch takes a whole number, got 'big'",
        ),
        (
            ['point2d_large', '--set', 'relabel.goals=past'],
            "unknown relabelling strategy 'past'; there are future, virtual, mixed",
        ),
        (['point2d_large', '--set', 'task.box=nan'], 'task.box takes a finite number, got nan'),
        (
            ['point2d_large', '--until', '95'],
            'schedule.until must be at least 0.0 and at most 1.0, got 95.0',
        ),
        (
            ['point2d_large', '--seed', '-1'],
            'seed must be a whole number from 0 to 2**63 - 1, got -1',
        ),
        (
            ['point2d_large', '--preset', 'paper', '--steps', '2000'],
            'schedule.steps must be at least 2100 (warm-up and one episode), got 2000',
        ),
        (
            ['reach', '--robot', 'ur5e', '--set', 'task.robot=panda'],
            'one robot is expected, got robot ur5e and task.robot panda',
        ),
        (
            ['point2d_large', '--resume'],
            'resume needs the folder of the run (out)',
        ),
    ],
)
def test_training_that_makes_no_sense_is_refused_before_anything_is_written(
    refused, arguments, sentence
):
    assert refused('train', *arguments).startswith(sentence)


@pytest.mark.parametrize(
    'key', ['agent.bach', 'batch', 'task.colour', 'seed', 'task_name', 'task']
)
def test_unknown_key_is_refused_with_those_there_are(refused, key):
    sentence = refused('train', 'point2d_large', '--set', f'{key}=3')
    assert sentence.startswith(f'unknown key {key!r}; the keys are ')
    assert ('task.threshold' if key.startswith('task.') else 'agent.batch') in sentence


def test_without_a_task_fetch_learns_to_reach(refused):
    # Fewer steps than a run needs, so that nothing is trained.
    assert refused('train', '--steps', '1').startswith('schedule.steps must be at least 80')
    config, folder = plan_arguments({})
    assert (config.task_name, config.task.robot) == ('reach', 'fetch')
    assert folder.name.startswith('reach-mher-fast')


@pytest.mark.parametrize('resume', [[], ['--resume']])
def test_folder_below_a_file_is_refused(refused, tmp_path, resume):
    (tmp_path / 'file').write_text('no folder')
    sentence = refused(*TINY_TRAINING, '--out', 'file/run', *resume)
    assert sentence.startswith(f'cannot {"read" if resume else "make the folder"} file/run')


def test_folder_that_holds_a_run_is_refused(refused, run):
    sentence = refused(*TINY_TRAINING, '--out', run)
    assert sentence == (
        f'{run} already holds a run; resume it (resume), or use another folder (out)'
    )


@pytest.mark.parametrize('made', [True, False])
def test_resume_without_a_run_is_refused(refused, tmp_path, made):
    if made:
        (tmp_path / 'empty').mkdir()
    sentence = refused(*TINY_TRAINING, '--resume', '--out', 'empty')
    assert sentence == f'empty holds no run: there is no {CONFIG} in it'


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['reacher'], "holds a run with task_name 'point2d_large', not 'reacher'"),
        (['point2d_large', '--seed', '1'], 'holds a run with seed 0, not 1'),
        (['point2d_large', '--algorithm', 'her'], "holds a run with algorithm 'mher', not 'her'"),
        (['point2d_large', '--preset', 'fast'], "holds a run with preset 'paper', not 'fast'"),
        (
            ['point2d_large', '--set', 'agent.batch=32'],
            'resume keeps all options: agent.batch is 64, not 32',
        ),
        (
            ['point2d_large', '--set', 'task.threshold=0.5'],
            'resume keeps all options: task.threshold is 1.0, not 0.5',
        ),
    ],
)
def test_resume_with_another_choice_is_refused(refused, run, arguments, sentence):
    assert refused('train', *arguments, '--resume', '--out', run).endswith(sentence)


def test_resume_of_a_run_with_a_broken_configuration_is_refused(refused, run):
    (run / CONFIG).write_text('{"task_name": ')
    sentence = refused('train', 'point2d_large', '--resume', '--out', run)
    assert sentence.startswith(f'cannot read {run / CONFIG}: ')


def test_training_prints_one_json_object(training):
    folder, out, error = training
    result = figures(out)
    assert error == ''
    assert result['run'] == str(folder)
    assert result['policy'] == str(folder / POLICY)
    assert result['ending'] == 'steps'
    assert result['env_steps'] == 300
    assert 0.0 <= result['success_rate'] <= 1.0
    assert {path.name for path in folder.iterdir()} == {
        *('config.json', 'progress.csv', 'tensorboard', 'policy.onnx'),
        *('checkpoint', 'episodes.npz'),
    }


def test_training_without_out_takes_a_free_folder_named_after_the_run(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = 'runs/point2d_large-her-paper-seed3'
    arguments = [*TINY_TRAINING, '--algorithm', 'her', '--seed', '3']
    (tmp_path / name).mkdir(parents=True)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[-3], lines[-1]] == [f'policy: {name}-2/policy.onnx', f'run:    {name}-2']
    assert re.fullmatch(r'of: .* steps, where success was best: \d+\.\d %', lines[-2])
    assert lines[-4] == 'stopped after 300 steps: the environment steps are used up'
    # A line an evaluation comes before.
    assert [line.split()[0] for line in lines[1:-4]] == ['200', '300']
    assert lines[0] == (
        f'point2d_large, her, preset paper, seed 3, until 300 steps are done; into {name}-2'
    )


def test_choices_reach_the_run(trained):
    config = json.loads((trained / CONFIG).read_text())
    assert config['task_name'] == 'point2d_large'
    assert config['preset'] == 'paper'
    assert config['agent']['hidden'] == [16, 16]
    assert config['schedule']['steps'] == 300


def test_resume_goes_on_with_more_steps(capsys, run):
    rows = (run / 'progress.csv').read_text()
    assert rows.count('\n') == 3
    arguments = ['train', 'point2d_large', '--resume', '--out', str(run), '--json']
    # Naming the choices of the run again does no harm.
    assert main([*arguments, *TINY, '--steps', '500']) == 0
    assert figures(capsys.readouterr().out)['env_steps'] == 500
    longer = (run / 'progress.csv').read_text()
    assert longer.startswith(rows)
    assert longer.count('\n') == 5


def interrupted(folder, number, *arguments):
    """Train until the first evaluation, send the signal, return how the process ended."""
    process = subprocess.Popen(
        [sys.executable, '-m', 'mher_ros', *TINY_TRAINING, '--out', str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        heading = process.stdout.readline()
        first = process.stdout.readline()
        process.send_signal(number)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert heading.startswith('point2d_large, mher, preset paper, seed 0, until'), error
    assert ' steps  success ' in first, error
    return process.returncode, out, error


def test_interrupted_training_leaves_a_checkpoint_and_says_how_to_go_on(capsys, tmp_path):
    folder = tmp_path / 'a run'
    code, out, error = interrupted(folder, signal.SIGINT, '--steps', '10000000')
    assert code == 130
    assert 'stopping, with a checkpoint; again to stop at once' in error
    assert 'Traceback' not in error
    *_, stopped, policy, where, again = out.splitlines()
    assert stopped.endswith('steps: it was asked to stop')
    assert policy == f"policy so far: mher export '{folder}'"
    assert where == f'run:    {folder}'
    assert again == f"continue with: mher train point2d_large --resume --out '{folder}'"
    assert (folder / 'checkpoint').exists()

    steps = int(stopped.split()[2])
    arguments = ['train', 'point2d_large', '--resume', '--out', str(folder), '--json']
    assert main([*arguments, '--steps', str(steps + 200)]) == 0
    result = figures(capsys.readouterr().out)
    assert result['ending'] == 'steps'
    assert result['env_steps'] == steps + 200


def test_training_that_plans_does_not_plan_to_the_end_when_it_is_stopped(tmp_path):
    # One action of such plans takes a minute.
    sizes = ('first_actions=50', 'trajectories=100', 'steps=1000', 'warmup_fits=0')
    plans = [word for size in sizes for word in ('--set', f'plan.{size}')]
    used = cpu_of_children()
    process = subprocess.Popen(
        [sys.executable, '-m', 'mher_ros', *TINY_TRAINING, '--algorithm', 'plangan', *plans]
        + ['--out', str(tmp_path / 'run')],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, 'OMP_NUM_THREADS': '1'},
        text=True,
    )
    try:
        process.stdout.readline()
        start = cpu_of(process.pid)
        while cpu_of(process.pid) < start + 2.0:  # by then it plans
            time.sleep(0.01)
        used += cpu_of(process.pid)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, error
    assert 'continue with: mher train point2d_large' in out
    assert (tmp_path / 'run' / 'checkpoint').exists()
    # Not the time on the clock: the machine may be busy.
    assert cpu_of_children() - used < 2.0


def cpu_of(number):
    """Return the time for which a process has used processors [s]."""
    fields = Path(f'/proc/{number}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def cpu_of_children():
    """Return that time of all child processes that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_terminated_training_ends_like_an_interrupted_one(tmp_path):
    folder = tmp_path / 'run'
    code, out, _ = interrupted(folder, signal.SIGTERM, '--steps', '10000000')
    assert code == 130
    assert 'continue with: mher train point2d_large' in out
    assert (folder / 'checkpoint').exists()


def test_a_budget_too_small_to_go_on_with_is_refused_and_changes_nothing(run, capsys):
    before = (run / CONFIG).read_bytes()
    assert main(['train', 'point2d_large', '--resume', '--out', str(run), '--steps', '50']) == 2
    assert 'schedule.steps must be at least 200' in capsys.readouterr().err
    assert (run / CONFIG).read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write anywhere')
def test_a_folder_that_may_not_be_written_is_refused(tmp_path, capsys):
    tmp_path.chmod(0o555)
    assert main([*TINY_TRAINING, '--out', str(tmp_path / 'run')]) == 2
    assert 'cannot make the folder' in capsys.readouterr().err


def test_a_table_that_cannot_be_written_ends_the_run_in_a_sentence(tmp_path):
    (tmp_path / 'run' / 'progress.csv').mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, '-m', 'mher_ros', *TINY_TRAINING, '--out', str(tmp_path / 'run')],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith('mher: ')
    assert 'progress.csv' in done.stderr
    assert 'Traceback' not in done.stderr
