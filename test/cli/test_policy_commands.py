"""What the command line does with a policy: export, evaluate, render."""

import sys

from cli_runs import figures
import imageio.v3 as iio
from mher_ros.cli import main
from mher_ros.learning.config import CONFIG, POLICY
from PIL import Image, ImageSequence
import pytest


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
    assert 'imageio-ffmpeg' in sentence


@pytest.mark.parametrize('name', ['film.webm', 'film', 'film.GIFF'])
def test_film_of_an_unknown_kind_is_refused(refused, policy, name):
    sentence = refused('render', policy, '--out', name)
    assert '.gif or .mp4 or .png' in sentence and repr(name) in sentence


def test_film_into_a_missing_folder_is_refused(refused, policy):
    assert 'no folder no' in refused('render', policy, '--out', 'no/film.gif')


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
