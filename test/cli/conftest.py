"""A tiny run that the tests of the command line share, and how a refusal is read."""

import contextlib
import io
from pathlib import Path
import shutil

from cli_runs import contents, TINY_TRAINING
from mher_ros.cli import main
from mher_ros.files import POLICY
import pytest


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
