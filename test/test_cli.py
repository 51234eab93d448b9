"""The command line, as a person or a script meets it."""

import contextlib
import io
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys

import imageio.v3 as iio
from mher_ros.cli import main
from mher_ros.learning.run import CONFIG, POLICY
from mher_ros.tasks import TASKS
from PIL import Image, ImageSequence
import pytest

COMMANDS = (
    *('tasks', 'train', 'up', 'evaluate', 'export', 'render'),
    *('options', 'experiment', 'bench', 'demo'),
)
TINY = (
    *('--preset', 'paper'),
    *('--set', 'schedule.warmup_episodes=1'),
    *('--set', 'schedule.evaluation_goals=5'),
    *('--set', 'agent.hidden=16,16'),
    *('--set', 'model.hidden=16'),
    *('--set', 'model.warmup_fits=2'),
)
TINY_TRAINING = ('train', 'point2d_large', *TINY, '--steps', '300')


@pytest.fixture(scope='session')
def training(tmp_path_factory):
    """Return the folder of a run of three episodes, and what was printed."""
    folder = tmp_path_factory.mktemp('cli') / 'run'
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        assert main([*TINY_TRAINING, '--out', str(folder), '--json']) == 0
    return folder, out.getvalue(), error.getvalue()


@pytest.fixture
def trained(training):
    """Return the folder of that run; not to be written to."""
    return training[0]


@pytest.fixture
def run(trained, tmp_path):
    """Return a copy of that run."""
    return Path(shutil.copytree(trained, tmp_path / 'run'))


@pytest.fixture
def policy(trained):
    return str(trained / POLICY)


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Return a function that gives the one sentence with which a command is refused."""
    monkeypatch.chdir(tmp_path)

    def run_and_read(*arguments):
        before = contents(tmp_path)
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        out, error = capsys.readouterr()
        assert out == ''
        assert error.startswith('mher: ')
        assert error.count('\n') == 1
        assert error.endswith('\n')
        assert contents(tmp_path) == before
        return error.removeprefix('mher: ').rstrip('\n')

    return run_and_read


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob('*')
    }


def figures(text):
    """Return the one JSON object that ``text`` is."""
    assert text.count('\n') == 1
    assert text.endswith('\n')
    values = json.loads(text, parse_constant=lambda name: pytest.fail(f'{name} is no JSON'))
    assert isinstance(values, dict)
    return values


# What is refused


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['fetch'], "unknown task 'fetch'; the tasks are " + ', '.join(TASKS)),
        (
            ['point2d_large', '--algorithm', 'sac'],
            "unknown algorithm 'sac'; there are mher, her, ddpg",
        ),
        (
            ['point2d_large', '--preset', 'slow'],
            "unknown preset 'slow'; there are paper, paper_2021, fast",
        ),
        (['point2d_large', '--set', 'agent.batch'], "--set takes key=value, got 'agent.batch'"),
        (['point2d_large', '--set', '=3'], "--set takes key=value, got '=3'"),
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
            "relabel.goals takes one of none, future, virtual, mixed; got 'past'",
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
            'schedule.steps must be at least 2100, the warm-up and one episode, got 2000',
        ),
        (
            ['point2d_large', '--resume'],
            'to go on with a run, name its folder (out)',
        ),
    ],
)
def test_training_that_makes_no_sense_is_refused_before_anything_is_written(
    refused, arguments, sentence
):
    assert refused('train', *arguments) == sentence


@pytest.mark.parametrize(
    'key', ['agent.bach', 'batch', 'task.colour', 'seed', 'task_name', 'task']
)
def test_unknown_key_is_refused_with_those_there_are(refused, key):
    sentence = refused('train', 'point2d_large', '--set', f'{key}=3')
    assert sentence.startswith(f'unknown key {key!r}; the keys are ')
    assert ('task.threshold' if key.startswith('task.') else 'agent.batch') in sentence


@pytest.mark.parametrize('resume', [[], ['--resume']])
def test_folder_below_a_file_is_refused(refused, tmp_path, resume):
    (tmp_path / 'file').write_text('no folder')
    sentence = refused(*TINY_TRAINING, '--out', 'file/run', *resume)
    assert sentence.startswith(f'cannot {"read" if resume else "make the folder"} file/run')


def test_folder_that_holds_a_run_is_refused(refused, run):
    sentence = refused(*TINY_TRAINING, '--out', run)
    assert sentence == (
        f'{run} already holds a run; go on with it (resume), or name another folder (out)'
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
            'a run goes on with the choices it began with: agent.batch is 64, not 32',
        ),
        (
            ['point2d_large', '--set', 'task.threshold=0.5'],
            'a run goes on with the choices it began with: task.threshold is 1.0, not 0.5',
        ),
    ],
)
def test_resume_with_another_choice_is_refused(refused, run, arguments, sentence):
    assert refused('train', *arguments, '--resume', '--out', run).endswith(sentence)


def test_resume_of_a_run_with_a_broken_configuration_is_refused(refused, run):
    (run / CONFIG).write_text('{"task_name": ')
    sentence = refused('train', 'point2d_large', '--resume', '--out', run)
    assert sentence.startswith(f'cannot read {run / CONFIG}: ')


@pytest.mark.parametrize('command', ['evaluate', 'render'])
def test_missing_policy_is_refused(refused, tmp_path, command):
    assert refused(command, 'no.onnx') == (
        f'{tmp_path / "no.onnx"}: cannot be read: No such file or directory'
    )


@pytest.mark.parametrize('command', ['evaluate', 'render'])
@pytest.mark.parametrize('content', [b'', b'not a policy\n', bytes(range(256)) * 40])
def test_file_that_is_no_policy_is_refused(refused, tmp_path, command, content):
    (tmp_path / 'policy.onnx').write_bytes(content)
    sentence = refused(command, 'policy.onnx')
    assert sentence.startswith(f'{tmp_path / "policy.onnx"}: is ')


def test_mp4_without_its_encoder_is_refused_with_its_name(refused, policy, monkeypatch):
    monkeypatch.setitem(sys.modules, 'imageio_ffmpeg', None)
    sentence = refused('render', policy, '--out', 'film.mp4')
    assert sentence.startswith('an .mp4 film takes the package imageio-ffmpeg, which is not')


@pytest.mark.parametrize('name', ['film.webm', 'film', 'film.GIFF'])
def test_film_of_an_unknown_kind_is_refused(refused, policy, name):
    sentence = refused('render', policy, '--out', name)
    assert sentence == f'a film is a file .gif or .mp4 or .png, got {name!r}'


def test_film_into_a_missing_folder_is_refused(refused, policy):
    assert refused('render', policy, '--out', 'no/film.gif') == (
        'there is no folder no to put film.gif in'
    )


def test_film_that_cannot_be_written_is_refused(refused, policy, tmp_path):
    (tmp_path / 'film.gif').mkdir()
    sentence = refused('render', policy, '--out', 'film.gif', '--goals', '1')
    assert sentence == 'cannot write film.gif: Is a directory'


def test_export_of_a_folder_without_a_run_is_refused(refused):
    assert refused('export', 'empty') == f'empty holds no run: there is no {CONFIG} in it'


def test_export_of_a_run_without_a_checkpoint_is_refused(refused, run):
    (run / 'checkpoint').unlink()
    assert refused('export', run) == f'there is no checkpoint {run / "checkpoint"}'


def test_export_into_a_missing_folder_is_refused(refused, run, tmp_path):
    assert refused('export', run, '--out', 'no/policy.onnx') == (
        f'{tmp_path / "no/policy.onnx"}: cannot be written: No such file or directory'
    )


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        ([], 'COMMAND'),
        (['fly'], "invalid choice: 'fly'"),
        (['train'], 'TASK'),
        (['train', 'point2d_large', '--steps', 'many'], '--steps: invalid int'),
        (['train', 'point2d_large', '--colour', 'red'], '--colour'),
        (['evaluate'], 'POLICY.onnx'),
        (['evaluate', 'p.onnx', '--episodes', '0'], "at least 1, got '0'"),
        (['evaluate', 'p.onnx', '--seed', '-1'], "at least 0, got '-1'"),
        (['evaluate', 'p.onnx', '--workers', 'all'], "at least 1, got 'all'"),
        (['render', 'p.onnx', '--goals', '1.5'], "at least 1, got '1.5'"),
    ],
)
def test_command_line_that_cannot_be_read_is_refused_with_the_usage(
    capsys, tmp_path, monkeypatch, arguments, expected
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, error = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ''
    assert error.startswith('usage: mher')
    assert expected in error.splitlines()[-1]
    assert contents(tmp_path) == {}


# What is printed


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as caught:
        main(['--help'])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if f'\n    {name}' not in text] == []


@pytest.mark.parametrize(
    ('command', 'words'),
    [
        ('tasks', ['--json']),
        ('train', [*TASKS, 'mher (default)', 'fast (default)', '--until', '--set KEY=VALUE']),
        ('evaluate', ['POLICY.onnx', '(default 100)', '--workers']),
        ('export', ['RUN', 'policy.onnx in that folder']),
        ('render', ['.gif, .mp4 or .png', '(default policy.gif)']),
        ('demo', ['demo_run']),
        ('up', ['SYSTEM', 'NAME:=VALUE', '--show-args', 'Ctrl-C']),
    ],
)
def test_help_of_each_command_says_what_it_takes(capsys, command, words):
    with pytest.raises(SystemExit) as caught:
        main([command, '--help'])
    assert caught.value.code == 0
    text = ' '.join(capsys.readouterr().out.split())
    assert [word for word in words if word not in text] == []


def test_help_loads_nothing_heavy():
    code = (
        'import sys\n'
        'from mher_ros.cli import main\n'
        'try:\n'
        '    main(["--help"])\n'
        'finally:\n'
        '    print(*{"launch", "mujoco", "rclpy", "torch"} & set(sys.modules), file=sys.stderr)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr.split() == []


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as caught:
        main(['--version'])
    assert caught.value.code == 0
    assert capsys.readouterr().out.strip()


def test_tasks_are_listed_with_their_options(capsys):
    assert main(['tasks']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(' ')] == list(TASKS)
    assert any(line.startswith('    task.box=5.0  half') for line in lines)
    assert any(line.startswith('    task.threshold=0.02  largest') for line in lines)


def test_tasks_as_json_name_every_option(capsys):
    assert main(['tasks', '--json']) == 0
    tasks = figures(capsys.readouterr().out)['tasks']
    assert [task['task'] for task in tasks] == list(TASKS)
    assert tasks[0]['options'][-1]['key'] == 'task.box'
    assert tasks[0]['options'][-1]['default'] == 5.0


@pytest.fixture
def without_pipe_errors(tmp_path):
    """Return a function that runs a command whose output nobody reads."""

    def run(*arguments):
        reader, writer = os.pipe()
        os.close(reader)
        environment = {key: text for key, text in os.environ.items() if key != 'PYTHONUNBUFFERED'}
        try:
            return subprocess.run(
                [sys.executable, '-m', 'mher_ros', *arguments],
                stdout=writer,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                cwd=tmp_path,
            )
        finally:
            os.close(writer)

    return run


def test_output_that_nobody_reads_ends_quietly(without_pipe_errors):
    done = without_pipe_errors('tasks')
    assert (done.returncode, done.stderr) == (1, '')


# From training to a film


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
        *('checkpoint', 'checkpoint.previous'),
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
    assert lines[-2:] == [f'policy: {name}-2/policy.onnx', f'run:    {name}-2']
    assert lines[-3] == 'stopped after 300 steps: the environment steps are used up'
    # A line an evaluation comes before.
    assert [line.split()[0] for line in lines[1:-3]] == ['200', '300']
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


def test_evaluation_prints_figures(capsys, policy):
    assert main(['evaluate', policy, '--episodes', '5']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:29].strip() for line in lines] == [
        'goals',
        'success',
        'mean error',
        'median error',
        '95 % of errors below',
        'steps to reach (median)',
        'motion at the goal (median)',
    ]
    assert lines[0].split() == ['goals', '5']


def test_evaluation_prints_one_json_object_that_its_seed_settles(capsys, policy):
    results = []
    for arguments in (['--workers', '2'], ['--workers', '1'], ['--seed', '1']):
        assert main(['evaluate', policy, '--episodes', '30', '--json', *arguments]) == 0
        out, error = capsys.readouterr()
        assert error == ''
        results.append(figures(out))
    assert results[0] == results[1]
    assert results[0]['mean_error'] != results[2]['mean_error']
    assert results[0]['goals'] == 30
    assert (results[0]['seed'], results[2]['seed']) == (0, 1)
    assert results[0]['task'] == 'point2d_large'


def test_export_writes_the_policy_of_the_checkpoint(capsys, run):
    before = (run / POLICY).read_bytes()
    (run / POLICY).unlink()
    assert main(['export', str(run)]) == 0
    assert capsys.readouterr().out == f'{run / POLICY}\n'
    assert (run / POLICY).read_bytes() == before


def test_render_draws_the_end_of_each_goal(capsys, policy, tmp_path):
    path = tmp_path / 'goals.png'
    assert main(['render', policy, '-o', str(path), '--goals', '2']) == 0
    assert capsys.readouterr().out == f'{path}\n'
    picture = iio.imread(path)
    assert picture.shape == (480, 2 * 480, 3)
    assert (picture[:, :480] != picture[:, 480:]).any()


@pytest.mark.parametrize('suffix', ['.gif', '.mp4'])
def test_render_films_the_policy(capsys, policy, tmp_path, suffix):
    if suffix == '.mp4':
        pytest.importorskip('imageio_ffmpeg')
    path = tmp_path / f'film{suffix}'
    assert main(['render', policy, '-o', str(path), '--goals', '2']) == 0
    assert capsys.readouterr() == (f'{path}\n', '')
    # For each goal the start and two seconds of a point that moves every 0.1 s. A .gif holds
    # equal frames as one that lasts longer.
    if suffix == '.gif':
        with Image.open(path) as film:
            lengths = [frame.info['duration'] for frame in ImageSequence.Iterator(film)]
        assert sum(lengths) == 2 * 21 * 100
        assert min(lengths) == 100
    else:
        assert iio.immeta(path)['fps'] == 10
        assert len(iio.imread(path)) == 2 * 21
    frames = iio.imread(path)
    assert (frames[0] != frames[-1]).any()


# Stopping


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
    assert 'stopping after this episode, with a checkpoint; again to stop at once' in error
    assert 'Traceback' not in error
    *_, stopped, policy, where, again = out.splitlines()
    assert stopped.endswith('steps: it was asked to stop')
    assert policy == f'policy: {folder / POLICY}'
    assert where == f'run:    {folder}'
    assert again == f"go on with: mher train point2d_large --resume --out '{folder}'"
    assert (folder / 'checkpoint').exists()

    steps = int(stopped.split()[2])
    arguments = ['train', 'point2d_large', '--resume', '--out', str(folder), '--json']
    assert main([*arguments, '--steps', str(steps + 200)]) == 0
    result = figures(capsys.readouterr().out)
    assert result['ending'] == 'steps'
    assert result['env_steps'] == steps + 200


@pytest.mark.slow
def test_terminated_training_ends_like_an_interrupted_one(tmp_path):
    folder = tmp_path / 'run'
    code, out, _ = interrupted(folder, signal.SIGTERM, '--steps', '10000000')
    assert code == 130
    assert 'go on with: mher train point2d_large' in out
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


def test_options_lists_every_key_that_set_takes(capsys):
    assert main(['options', 'point2d_large', '--json']) == 0
    listed = {row['key']: row['value'] for row in json.loads(capsys.readouterr().out)['options']}
    assert listed['task.box'] == 5.0
    assert listed['agent.relative_goal'] is True
    assert main(['options', 'point2d_large', '--preset', 'paper']) == 0
    assert 'agent.hidden=256,256,256' in capsys.readouterr().out


def test_up_lists_the_systems(capsys):
    assert main(['up']) == 0
    assert capsys.readouterr().out.startswith('train_sim    learn a policy')


@pytest.mark.parametrize('flag', ['--help', '--show-args', '-h', '-s'])
def test_up_lists_the_arguments_of_a_system(capsys, flag):
    assert main(['up', 'train_sim', flag]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('train_sim: learn a policy')
    listed = [line.split()[0] for line in lines if ':=' in line]
    assert listed[:4] == ['task:=fetch_reach', 'algorithm:=mher', 'preset:=fast', 'seed:=0']
    assert any(', '.join(TASKS) in line for line in lines)


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['fly'], "unknown system 'fly'; there are train_sim"),
        (['fly', '--help'], "unknown system 'fly'; there are train_sim"),
        (['train_sim', 'seed=1'], "train_sim takes key:=value, got 'seed=1'"),
        (['train_sim', ':=1'], "train_sim takes key:=value, got ':=1'"),
        (['train_sim', '--fast'], "train_sim takes key:=value, got '--fast'"),
        (['train_sim', 'seed:=1', 'seed:=x'], "seed takes a whole number, got 'x'"),
    ],
)
def test_up_refuses_what_it_cannot_read(refused, arguments, sentence):
    assert refused('up', *arguments) == sentence


def test_an_unknown_experiment_lists_those_there_are(capsys):
    assert main(['experiment', 'alchemy']) == 2
    assert "unknown experiment 'alchemy'; there are paper_point2d" in capsys.readouterr().err


@pytest.mark.parametrize('seeds', ['', 'x', '3-1', '-2'])
def test_seeds_that_are_none_are_refused(seeds, capsys):
    with pytest.raises(SystemExit) as ended:
        main(['experiment', 'fast_fetch', f'--seeds={seeds}'])
    assert ended.value.code == 2
    assert 'argument --seeds' in capsys.readouterr().err


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
