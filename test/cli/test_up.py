"""``mher up``, as far as it starts nothing."""

from mher_ros.cli import main
from mher_ros.tasks import PAPER_TASKS
import pytest


def test_up_lists_the_systems(capsys):
    assert main(['up']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=3)[:3] for line in lines] == [
        ['train_sim', 'learn', 'a'],
        ['deploy_sim', 'move', 'a'],
        ['deploy', 'move', 'a'],
    ]


@pytest.mark.parametrize('flag', ['--help', '--show-args', '-h', '-s'])
def test_up_lists_the_arguments_of_a_system(capsys, flag):
    assert main(['up', 'train_sim', flag]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('train_sim: learn a policy')
    listed = [line.split()[0] for line in lines if ':=' in line]
    assert listed[:4] == ['task:=reach', 'robot:=', 'algorithm:=mher', 'preset:=fast']
    assert any(', '.join(PAPER_TASKS) in line for line in lines)


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['fly'], "unknown bringup 'fly'; there are train_sim, deploy_sim, deploy"),
        (['fly', '--help'], "unknown bringup 'fly'; there are train_sim, deploy_sim, deploy"),
        (['train_sim', 'seed=1'], "train_sim takes key:=value, got 'seed=1'"),
        (['train_sim', ':=1'], "train_sim takes key:=value, got ':=1'"),
        (['train_sim', '--fast'], "train_sim takes key:=value, got '--fast'"),
        (['train_sim', 'seed:=1', 'seed:=x'], "seed takes a whole number, got 'x'"),
    ],
)
def test_up_refuses_what_it_cannot_read(refused, arguments, sentence):
    assert refused('up', *arguments) == sentence
