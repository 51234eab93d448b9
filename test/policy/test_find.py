"""Which policy file is meant."""

import os

from mher_ros.policy.contract import PolicyFileError
from mher_ros.policy.onnx_policy import find_policy
import pytest


def test_a_file_or_the_folder_of_a_run_is_named(tmp_path):
    file = tmp_path / 'mine.onnx'
    assert find_policy(str(file)) == file
    assert find_policy(str(tmp_path)) == tmp_path / 'policy.onnx'


def test_without_a_name_it_is_the_newest_below_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for age, run in ((50, 'new/deep'), (100, 'old')):
        folder = tmp_path / 'runs' / run
        folder.mkdir(parents=True)
        (folder / 'policy.onnx').touch()
        os.utime(folder / 'policy.onnx', (1e9 - age, 1e9 - age))
    assert find_policy('').resolve() == tmp_path / 'runs' / 'new' / 'deep' / 'policy.onnx'


def test_where_there_is_none_the_sentence_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyFileError, match=f'none below {tmp_path}/runs: train one'):
        find_policy('')
