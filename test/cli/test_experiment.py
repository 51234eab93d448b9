import json
import os
from pathlib import Path
import signal
import subprocess
import sys

from mher_ros.cli import main
from mher_ros.cli.arguments import seeds
from mher_ros.experiments import experiment as definitions
import pytest
from tiny_experiment import FAILING, tiny_experiment, tiny_variant

SHARED = Path(__file__).parent.parent / 'shared' / 'runs'
ENDLESS = f"""
import sys
sys.path.insert(0, {str(SHARED)!r})
from mher_ros.cli import main
from mher_ros.experiments import experiment as definitions
from tiny_experiment import LONG, tiny_experiment, tiny_variant

if __name__ == '__main__':
    variants = tiny_variant('ddpg'), tiny_variant('her', LONG)
    definitions.find_experiment = lambda name: tiny_experiment(*variants)
    arguments = ['tiny', '--seeds', '1', '--processes', '1', '--out', sys.argv[1]]
    sys.exit(main(['experiment', *arguments]))
"""


@pytest.fixture
def known(monkeypatch):
    """Return a function that makes an experiment of these variants known as ``tiny``."""

    def make_known(*variants):
        experiment = tiny_experiment(*variants)
        monkeypatch.setattr(definitions, 'find_experiment', lambda name: experiment)

    return make_known


@pytest.mark.parametrize(
    ('text', 'expected'),
    [('5', [1, 2, 3, 4, 5]), ('1', [1]), ('1-3', [1, 2, 3]), ('1,2,7', [1, 2, 7]), ('3-3', [3])],
)
def test_a_bare_number_is_how_many_seeds(text, expected):
    assert seeds(text) == expected


def test_experiments_are_listed_with_their_questions(capsys):
    assert main(['experiment']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith('benchmark ') and '?' in line for line in lines)
    assert main(['experiment', '--json']) == 0
    assert len(json.loads(capsys.readouterr().out)) == len(lines)


def test_tables_figures_and_a_page_come_of_an_experiment(known, capsys, tmp_path):
    known(tiny_variant('her'), tiny_variant('ddpg'))
    arguments = ['experiment', 'tiny', '--seeds', '2', '--processes', '1', '--out', str(tmp_path)]
    assert main(arguments) == 0
    out, error = capsys.readouterr()
    assert '| algorithm | success at the end ' in out
    assert out in (tmp_path / 'tiny' / 'report.md').read_text()
    assert '4/4' in error
    assert str(tmp_path / 'tiny' / 'report.md') in error
    assert len(list((tmp_path / 'tiny' / 'results').iterdir())) == 4
    # Nothing is run again, and one algorithm is a table of its own.
    assert main([*arguments, '--algorithms', 'her', '--json']) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures['seeds'] == [1, 2]
    assert figures['complete'] is True
    assert list(figures['tasks']['point2d_large']) == ['her']
    assert figures['tasks']['point2d_large']['her']['runs'] == 2
    assert len(list((tmp_path / 'tiny' / 'results').iterdir())) == 4


def test_a_failed_run_makes_the_command_fail_with_its_reason(known, capsys, tmp_path):
    known(tiny_variant('ddpg'), tiny_variant('her', recorder=FAILING))
    arguments = ['experiment', 'tiny', '--seeds', '1', '--processes', '1', '--out', str(tmp_path)]
    assert main(arguments) == 1
    out, error = capsys.readouterr()
    assert '**Incomplete: 1 of 2 runs are missing.**' in out
    assert '| ddpg ' in out
    assert "failed: point2d_large, her, seed 1: unknown recorder 'nobody'" in error


@pytest.mark.parametrize(
    ('arguments', 'expected'),
    [
        (['benchmark', '--tasks', 'moon'], "benchmark has no task 'moon'"),
        (['benchmark', '--algorithms', 'alchemy'], "benchmark has no algorithm 'alchemy'"),
        (['benchmark', '--set', 'agent.batch'], '--set takes key=value'),
        (['benchmark', '--set', 'agent.spells=1'], 'agent.spells'),
        (['benchmark', '--ray', 'nowhere'], 'HOST:PORT'),
        (['benchmark', '--ray', 'a:1', '--processes', '2'], '--processes'),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(
    arguments, expected, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert main(['experiment', *arguments]) == 2
    assert expected in capsys.readouterr().err
    assert not list(tmp_path.rglob('*.json'))


@pytest.mark.slow
def test_ctrl_c_leaves_what_is_done(tmp_path):
    script = tmp_path / 'endless.py'
    script.write_text(ENDLESS)
    with subprocess.Popen(
        [sys.executable, script, tmp_path / 'out'],
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Whoever was started in the background of a script ignores Ctrl-C, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as experiment:
        said = [experiment.stderr.readline() for _ in range(2)]
        assert said[1].split() == b'1/2 point2d_large, ddpg, seed 1'.split()
        # As a terminal does: to every process of the group.
        os.killpg(experiment.pid, signal.SIGINT)
        experiment.communicate()
    assert experiment.returncode == 130
    (kept,) = (tmp_path / 'out' / 'tiny' / 'results').iterdir()
    assert kept.name.startswith('point2d_large-ddpg-seed1-')
