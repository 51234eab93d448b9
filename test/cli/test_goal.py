"""Goals and stops from the command line, for the real policy_node."""

from mher_ros.cli import main
import pytest


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        (('goal', '1', '2'), 'required: Z'),
        (('goal', '1', '2', 'up'), "takes a finite number, got 'up'"),
        (('goal', '1', '2', 'nan'), "takes a finite number, got 'nan'"),
    ],
)
def test_goals_that_make_no_sense_are_refused(capsys, words, text):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize('words', [('goal', '1', '2', '3'), ('stop',), ('clear',)])
def test_a_namespace_that_makes_no_sense_is_refused(refused, words):
    assert refused(*words, '--namespace', 'a b').startswith('--namespace takes a name')
