"""What the command line does with a policy: export, evaluate."""

from cli_runs import figures
from mher_ros.cli import main
from mher_ros.files import CONFIG, POLICY
import pytest


def test_missing_policy_is_refused(refused, tmp_path):
    assert refused('evaluate', 'no.onnx') == (
        f'{tmp_path / "no.onnx"}: cannot be read: No such file or directory'
    )


@pytest.mark.parametrize('content', [b'', b'not a policy\n', bytes(range(256)) * 40])
def test_file_that_is_no_policy_is_refused(refused, tmp_path, content):
    (tmp_path / 'policy.onnx').write_bytes(content)
    sentence = refused('evaluate', 'policy.onnx')
    assert sentence.startswith(f'{tmp_path / "policy.onnx"}: is ')


def test_export_of_a_folder_without_a_run_is_refused(refused):
    assert refused('export', 'empty') == f'empty holds no run: there is no {CONFIG} in it'


def test_export_of_a_run_without_a_checkpoint_is_refused(refused, run):
    (run / 'checkpoint').unlink()
    assert refused('export', run) == f'there is no checkpoint {run / "checkpoint"}'


def test_export_into_a_missing_folder_is_refused(refused, run, tmp_path):
    assert refused('export', run, '--out', 'no/policy.onnx') == (
        f'{tmp_path / "no/policy.onnx"}: cannot be written: No such file or directory'
    )


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
