"""Folders of runs whose files are whole by their hashes and hold something else."""

import copy
import io
import json
import shutil
import zipfile

from mher_ros.errors import MherError
from mher_ros.files import CHECKPOINT, CONFIG, EPISODES
from mher_ros.learning.config import load_config
from mher_ros.learning.run.checkpoint import (
    CheckpointError,
    load_checkpoint,
    save_checkpoint,
)
from mher_ros.learning.run.episodes import EpisodesError, read_episodes
from mher_ros.learning.run.session import export_run
import numpy as np
import pytest
import torch
from training_runs import run


@pytest.fixture
def copied(whole, tmp_path):
    """Return a copy of a run's folder, its configuration, and what its checkpoint holds."""
    folder = tmp_path / 'run'
    shutil.copytree(whole[0], folder)
    return folder, whole[1], load_checkpoint(folder / CHECKPOINT)


def put(*keys, value):
    """Return what puts a value at keys; a function is given what was there."""

    def edit(state):
        for key in keys[:-1]:
            state = state[key]
        state[keys[-1]] = value(state[keys[-1]]) if callable(value) else value

    return edit


def drop(*keys):
    def edit(state):
        for key in keys[:-1]:
            state = state[key]
        del state[keys[-1]]

    return edit


ACTOR = ('agent', 'modules', 'actor', 'layers.0.weight')
MOMENT = ('agent', 'optimisers', 0, 'state', 0, 'exp_avg')
REPLAY = ('agent', 'replay')
WRONG = {
    **{
        f'{kind} for {key}': put(key, value=value)
        for key in ('config', 'agent', 'rows', 'env_steps', 'episodes', 'seconds')
        for kind, value in (('none', None), ('text', 'x'), ('a tensor', torch.zeros(3)))
    },
    **{
        f'no {key}': drop(key)
        for key in ('config', 'agent', 'rows', 'env_steps', 'seconds', 'training_successes')
    },
    **{
        f'no {key} of the agent': drop('agent', key)
        for key in ('modules', 'optimisers', 'replay', 'rng', 'updates', 'losses')
    },
    'text for the best': put('best', value='x'),
    'the best of another shape': put('best', 'policy', value={}),
    'the best without its evaluation': drop('best', 'evaluation'),
    'no best': drop('best'),
    'config of a list': put('config', value='[]'),
    'config that is cut off': put('config', value='{"seed": '),
    'weights of another shape': put(*ACTOR, value=torch.zeros(3, 3)),
    'weights of another type': put(*ACTOR, value=lambda one: one.double()),
    'weights that are none': put(*ACTOR, value=None),
    'weights that are nan': put(*ACTOR, value=lambda one: one * np.nan),
    'a layer more': put('agent', 'modules', 'actor', 'layers.9.weight', value=torch.zeros(1)),
    'a layer less': drop(*ACTOR),
    'a network more': put('agent', 'modules', 'other', value={}),
    'moments of another shape': put(*MOMENT, value=torch.zeros(3)),
    'moments that are nan': put(*MOMENT, value=lambda one: one * np.nan),
    'moments that are text': put(*MOMENT, value='x'),
    'one optimiser less': drop('agent', 'optimisers', -1),
    'another learning rate': put(
        'agent', 'optimisers', 0, 'param_groups', 0, 'lr', value=float('nan')
    ),
    'replay of another shape': put(*REPLAY, 'observations', value=torch.zeros(1)),
    'replay to be broadcast': put(*REPLAY, 'goals', value=lambda one: one[:1]),
    'replay of another type': put(*REPLAY, 'actions', value=lambda one: one.double()),
    'replay that is nan': put(*REPLAY, 'observations', value=lambda one: one * np.nan),
    'replay without an array': drop(*REPLAY, 'lengths'),
    'lengths beyond the episode': put(*REPLAY, 'lengths', value=lambda one: one + 1000),
    'lengths below zero': put(*REPLAY, 'lengths', value=lambda one: -one),
    'fewer episodes than held': put(*REPLAY, 'episodes_stored', value=torch.tensor([1])),
    'episodes below zero': put(*REPLAY, 'episodes_stored', value=torch.tensor([-1])),
    'no number of episodes': put(*REPLAY, 'episodes_stored', value=torch.tensor([])),
    'chance of another generator': put('agent', 'rng', value='{"bit_generator": "MT19937"}'),
    'chance that is text': put('agent', 'rng', value='"x"'),
    'chance without numbers': put(
        'agent', 'rng', value=lambda one: json.dumps({**json.loads(one), 'state': {}})
    ),
    'updates below zero': put('agent', 'updates', value=-1),
    'updates that are text': put('agent', 'updates', value='many'),
    'losses that are nan': put('agent', 'losses', value={'actor_loss': [float('nan')]}),
    'losses that are text': put('agent', 'losses', value={'actor_loss': 'x'}),
    'rows that are text': put('rows', value=['x']),
    'rows of text': put('rows', 0, 'success_rate', value='all'),
    'rows of nan': put('rows', 0, 'final_error', value=float('nan')),
    'rows of other figures': put('rows', 0, value={'env_steps': 1}),
    'steps below zero': put('env_steps', value=-5),
    'episodes of another run': put('episodes', value=10**9),
    'time that is nan': put('seconds', value=float('nan')),
}


@pytest.mark.parametrize('name', WRONG)
def test_a_checkpoint_with_the_right_hash_and_wrong_contents_is_refused(copied, name):
    folder, config, state = copied
    state = copy.deepcopy(state)
    WRONG[name](state)
    save_checkpoint(folder / CHECKPOINT, state)
    with pytest.raises(CheckpointError, match='checkpoint') as told:
        run(folder, config, resume=True)
    assert '\n' not in str(told.value)
    with pytest.raises(CheckpointError):
        export_run(folder)


@pytest.mark.parametrize('state', [[], None, 3, torch.zeros(3), 'x'])
def test_a_checkpoint_that_is_no_mapping_is_refused(tmp_path, state):
    save_checkpoint(tmp_path / CHECKPOINT, state)
    with pytest.raises(CheckpointError, match='holds no state of a run'):
        load_checkpoint(tmp_path / CHECKPOINT)


@pytest.mark.parametrize('content', [b'', b'x', b'PK\x03\x04', b'\x80\x02}q\x00.', b'\0' * 1000])
def test_a_hashed_checkpoint_that_torch_did_not_write_is_refused(tmp_path, monkeypatch, content):
    monkeypatch.setattr(torch, 'save', lambda state, file: file.write(content))
    save_checkpoint(tmp_path / CHECKPOINT, {})
    with pytest.raises(CheckpointError):
        state = load_checkpoint(tmp_path / CHECKPOINT)
        assert state == {}
        raise CheckpointError('an empty mapping, which a trainer refuses')


def test_a_checkpoint_that_names_code_is_refused(tmp_path):
    save_checkpoint(tmp_path / CHECKPOINT, {'agent': zipfile.ZipFile})
    with pytest.raises(CheckpointError, match='holds no state of a run'):
        load_checkpoint(tmp_path / CHECKPOINT)


def array(name, value):
    return lambda arrays: arrays.update({name: value(arrays[name]) if callable(value) else value})


EPISODES_WRONG = {
    **{f'no {name}': lambda arrays, name=name: arrays.pop(name) for name in ('format', 'joints')},
    'objects': array('goals', np.array([{}], object)),
    'fewer': array('goals', lambda one: one[:1]),
    'one number': array('joints', np.float32(0.0)),
    'another format': array('format', np.array(99)),
    'format of text': array('format', np.array('2')),
}


@pytest.mark.parametrize('name', EPISODES_WRONG)
def test_a_file_of_episodes_with_wrong_arrays_is_refused(copied, name):
    folder, _, _ = copied
    with np.load(folder / EPISODES) as file:
        arrays = dict(file)
    EPISODES_WRONG[name](arrays)
    np.savez(folder / EPISODES, **arrays)
    with pytest.raises(EpisodesError, match='episodes'):
        read_episodes(folder / EPISODES)


def header(text):
    """Return an array in a file whose header is this text."""
    content = text.ljust(117).encode() + b'\n'
    return b'\x93NUMPY\x01\x00' + len(content).to_bytes(2, 'little') + content


@pytest.mark.parametrize(
    'member',
    [
        b'',
        b'\x93NUMPY',
        b'\x93NUMPY\x09\x00' + b'\0' * 100,
        header('{'),
        header('['),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"),
        header("{'descr': 7, 'fortran_order': 7, 'shape': 7}"),
        header('[' * 110),
        b'not an array',
    ],
)
def test_a_file_of_episodes_with_damaged_members_is_refused(copied, member):
    folder, _, _ = copied
    path = folder / EPISODES
    with np.load(path) as file:
        names = list(file)
    with zipfile.ZipFile(path, 'w') as archive:
        for name in names:
            archive.writestr(f'{name}.npy', member)
    with pytest.raises(EpisodesError):
        read_episodes(path)


def test_a_file_of_episodes_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / EPISODES, 'w', zipfile.ZIP_DEFLATED) as archive:
        with archive.open('format.npy', 'w', force_zip64=True) as member:
            for _ in range(300):
                member.write(bytes(2**20))
    with pytest.raises(EpisodesError, match='unpack'):
        read_episodes(tmp_path / EPISODES)


@pytest.mark.parametrize('kept', [0.02, 0.3, 0.7, 0.999])
def test_a_file_of_episodes_that_is_cut_off_is_refused(copied, kept):
    path = copied[0] / EPISODES
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    with pytest.raises(EpisodesError):
        read_episodes(path)


def test_one_array_is_no_file_of_episodes(tmp_path):
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    (tmp_path / EPISODES).write_bytes(content.getvalue())
    with pytest.raises(EpisodesError):
        read_episodes(tmp_path / EPISODES)


@pytest.mark.parametrize(
    'content',
    [
        *(b'', b'[]', b'3', b'null', b'{}', b'{"a": ', b'\xff\xfe', b'[' * 100_000, b'{' * 2**21),
        *(b'9' * 5000, b'"x"', b'NaN'),
    ],
    ids=range(12),
)
def test_a_configuration_that_is_none_is_refused(tmp_path, content):
    (tmp_path / CONFIG).write_bytes(content)
    with pytest.raises(MherError):
        load_config(tmp_path)


@pytest.mark.parametrize('value', [None, [], 'x', -1, 1e400, [[]]], ids=range(6))
def test_a_configuration_of_wrong_values_is_refused(copied, value):
    folder, config, _ = copied
    for keys in (
        *(('task_name',), ('algorithm',), ('preset',), ('seed',), ('task',), ('agent',)),
        *(('agent', 'hidden'), ('agent', 'batch'), ('agent', 'alpha'), ('schedule', 'steps')),
    ):
        values = json.loads(json.dumps(config.to_dict()))
        put(*keys, value=value)(values)
        (folder / CONFIG).write_text(json.dumps(values))
        with pytest.raises(MherError):
            load_config(folder)
