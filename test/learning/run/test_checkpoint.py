import os
import resource
import subprocess
import sys

from mher_ros.learning.run.checkpoint import (
    CheckpointError,
    load_checkpoint,
    save_checkpoint,
)
import pytest
import torch

STATE = {'weights': torch.arange(5.0), 'rows': [{'env_steps': 3}], 'name': 'x', 'none': None}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / 'checkpoint'
    save_checkpoint(path, STATE)
    return path


def test_what_is_saved_is_loaded(saved):
    state = load_checkpoint(saved)
    assert torch.equal(state['weights'], STATE['weights'])
    assert {key: state[key] for key in ('rows', 'name', 'none')} == {
        key: STATE[key] for key in ('rows', 'name', 'none')
    }
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.parametrize('position', [0.3, 0.9])
def test_a_changed_byte_is_noticed_and_the_file_left_alone(saved, position):
    content = bytearray(saved.read_bytes())
    content[int(position * len(content))] ^= 1
    saved.write_bytes(content)
    with pytest.raises(CheckpointError, match='is damaged'):
        load_checkpoint(saved)
    assert saved.read_bytes() == bytes(content)


def test_a_truncated_checkpoint_is_noticed(saved):
    saved.write_bytes(saved.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match='is damaged'):
        load_checkpoint(saved)


@pytest.mark.parametrize('content', [b'', b'hello', b'\x80\x04\x95'])
def test_a_file_of_another_kind_is_named(tmp_path, content):
    path = tmp_path / 'checkpoint'
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match='not a checkpoint of this version'):
        load_checkpoint(path)


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(CheckpointError, match='there is no checkpoint'):
        load_checkpoint(tmp_path / 'checkpoint')


def test_nothing_but_data_is_unpickled(tmp_path, saved):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / 'was_run'),)

    save_checkpoint(saved, {'weights': Evil()})
    with pytest.raises(Exception, match='[Ww]eights'):
        load_checkpoint(saved)
    assert not (tmp_path / 'was_run').exists()


def test_a_full_disk_gives_an_error_and_keeps_the_last_good_one(saved):
    # A limit on file size is met by the same system call that a full disk fails in.
    code = (
        'import sys, torch\n'
        'from pathlib import Path\n'
        'from mher_ros.learning.run.checkpoint import save_checkpoint\n'
        'save_checkpoint(Path(sys.argv[1]), {"weights": torch.zeros(100_000)})\n'
    )
    run = subprocess.run(
        [sys.executable, '-c', code, str(saved)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert run.returncode != 0
    assert 'CheckpointError' in run.stderr
    assert 'previous checkpoint' in run.stderr
    assert torch.equal(load_checkpoint(saved)['weights'], STATE['weights'])
    assert set(saved.parent.iterdir()) == {saved}
