"""The command line as a whole, and the commands that only tell."""

import json
import os
import subprocess
import sys

from cli_runs import contents, figures
from mher_ros.cli import COMMANDS, main
from mher_ros.tasks import TASKS
import pytest


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        ([], 'COMMAND'),
        (['fly'], "invalid choice: 'fly'"),
        (['train', 'point2d_large', '--steps', 'many'], '--steps: invalid int'),
        (['train', 'point2d_large', '--colour', 'red'], '--colour'),
        (['evaluate'], 'POLICY.onnx'),
        (['evaluate', 'p.onnx', '--episodes', '0'], "at least 1, got '0'"),
        (['evaluate', 'p.onnx', '--seed', '-1'], "at least 0, got '-1'"),
        (['evaluate', 'p.onnx', '--workers', 'all'], "at least 1, got 'all'"),
        (['view'], 'RUN'),
        (['view', 'run', '--port', '65536'], "from 0 to 65535, got '65536'"),
        (['view', 'run', '--port', '-1'], "from 0 to 65535, got '-1'"),
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


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as caught:
        main(['--help'])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert [name for name in COMMANDS if f'\n    {name}' not in text] == []


def test_help_loads_nothing_heavy():
    code = (
        'import sys\n'
        'from mher_ros.cli import main\n'
        'try:\n'
        '    main(["--help"])\n'
        'finally:\n'
        '    heavy = {"launch", "mujoco", "rclpy", "torch", "viser"}\n'
        '    print(*heavy & set(sys.modules), file=sys.stderr)\n'
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


def test_options_lists_every_key_that_set_takes(capsys):
    assert main(['options', 'point2d_large', '--json']) == 0
    listed = {row['key']: row['value'] for row in json.loads(capsys.readouterr().out)['options']}
    assert listed['task.box'] == 5.0
    assert listed['agent.relative_goal'] is True
    assert main(['options', 'point2d_large', '--preset', 'paper']) == 0
    assert 'agent.hidden=256,256,256' in capsys.readouterr().out


def test_an_unknown_experiment_lists_those_there_are(capsys):
    assert main(['experiment', 'alchemy']) == 2
    assert "unknown experiment 'alchemy'" in capsys.readouterr().err


@pytest.mark.parametrize('seeds', ['', 'x', '3-1', '-2', '0'])
def test_seeds_that_are_none_are_refused(seeds, capsys):
    with pytest.raises(SystemExit) as ended:
        main(['experiment', 'fast_fetch', f'--seeds={seeds}'])
    assert ended.value.code == 2
    assert 'argument --seeds' in capsys.readouterr().err
