"""What ``load`` refuses, each with a sentence of its own."""

import json
import re
import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.policy import load, PolicyFileError
from mher_ros.policy.contract import CONTRACT_KEY
import numpy as np
import onnx
import pytest


@pytest.fixture(scope='session')
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp('damaged') / 'policy.onnx'


def refused(path, message):
    with pytest.raises(PolicyFileError, match=f'^{re.escape(str(path))}: {message}'):
        load(path)


def test_missing_file_is_refused(tmp_path):
    refused(tmp_path / 'policy.onnx', 'cannot be read: No such file')


def test_directory_is_refused(tmp_path):
    refused(tmp_path, 'cannot be read: Is a directory')


def test_empty_file_is_refused(tmp_path):
    path = tmp_path / 'policy.onnx'
    path.touch()
    refused(path, 'is empty')


@pytest.mark.parametrize(
    'data',
    [
        b'\x89PNG\r\n\x1a\n\0\0\0\rIHDR' + bytes(50),
        b'Not a policy.\n',
        b'0' * 1000,
        b'\0',
        np.random.default_rng(0).bytes(5000),
        b'version https://git-lfs.github.com/spec/v1\noid sha256:' + b'ab' * 32 + b'\nsize 9\n',
    ],
    ids=['png', 'text', 'digits', 'one byte', 'random', 'git-lfs pointer'],
)
def test_file_that_is_not_onnx_is_refused(tmp_path, data):
    path = tmp_path / 'policy.onnx'
    path.write_bytes(data)
    refused(path, 'is no policy of mher_ros')


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_noticed(exported, scratch, data):
    content = bytearray(exported.path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    scratch.write_bytes(content)
    refused(scratch, 'was changed|is cut short, or its end was changed')


def test_changed_bytes_of_the_contract_and_the_seal_are_noticed(exported, scratch):
    content = exported.path.read_bytes()
    contract = range(content.index(CONTRACT_KEY.encode()) - 8, len(content), 7)
    for position in (*contract, *range(len(content) - 100, len(content))):
        changed = bytearray(content)
        changed[position] ^= 1
        scratch.write_bytes(changed)
        refused(scratch, 'was changed|is cut short, or its end was changed')


def test_looser_threshold_written_into_the_file_is_noticed(exported, scratch):
    content = exported.path.read_bytes()
    before = b'"success_threshold": 0.05'
    assert content.count(before) == 1
    scratch.write_bytes(content.replace(before, b'"success_threshold": 0.95'))
    refused(scratch, 'was changed after it was written: its SHA-256 does not match')


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_truncated_file_is_refused(exported, scratch, data):
    content = exported.path.read_bytes()
    kept = data.draw(st.integers(32, len(content) - 1))
    scratch.write_bytes(content[:kept])
    refused(scratch, 'is cut short')


def test_appended_byte_is_noticed(exported, scratch):
    scratch.write_bytes(exported.path.read_bytes() + b'\n')
    refused(scratch, 'is cut short, or its end was changed')


def test_seal_is_what_sha256sum_prints(exported):
    content = exported.path.read_bytes()
    printed = subprocess.run(['sha256sum'], input=content[:-64], capture_output=True, check=True)
    assert printed.stdout.split()[0] == content[-64:]
    assert load(exported.path).sha256 == content[-64:].decode()


def test_onnx_model_of_others_is_refused(exported, tmp_path):
    model = onnx.load(exported.path)
    del model.metadata_props[:]
    model.producer_name = 'pytorch'
    path = tmp_path / 'policy.onnx'
    onnx.save(model, path)
    refused(path, 'is no policy of mher_ros')


def test_policy_saved_again_by_another_tool_is_refused(exported, tmp_path):
    model = onnx.load(exported.path)
    model.metadata_props.reverse()
    model.producer_name = 'other tool'
    path = tmp_path / 'policy.onnx'
    onnx.save(model, path)
    refused(path, 'was changed after it was written')


def test_sealed_model_without_contract_is_refused(rewritten):
    refused(rewritten(lambda model, entries: entries.clear()), 'is an ONNX model but no policy')


def test_contract_that_is_not_json_is_refused(rewritten):
    path = rewritten(lambda model, entries: entries.update({CONTRACT_KEY: 'format_version: 1'}))
    refused(path, 'contract: expected JSON')


def test_other_format_version_is_refused(rewritten):
    text = json.dumps({'format_version': 1, 'robot': {}})
    path = rewritten(lambda model, entries: entries.update({CONTRACT_KEY: text}))
    refused(path, 'contract: expected format version 4, got 1')


def test_contract_that_does_not_fit_itself_is_refused(rewritten):
    def edit(model, entries):
        values = json.loads(entries[CONTRACT_KEY])
        values['interface']['goal_low'].pop()
        entries[CONTRACT_KEY] = json.dumps(values)

    refused(rewritten(edit), r'interface.goal_low: expected 3 numbers')


@pytest.mark.parametrize(
    ('vector', 'message'),
    [
        ('observation', r".*'observation': 9.*; got .*'observation': 10"),
        ('action', r".*'action': 3}; got {'action': 4}"),
    ],
)
def test_contract_that_names_fewer_entries_than_the_graph_is_refused(rewritten, vector, message):
    def edit(model, entries):
        values = json.loads(entries[CONTRACT_KEY])
        values['interface'][vector].pop()
        entries[CONTRACT_KEY] = json.dumps(values)

    refused(rewritten(edit), f'graph: the contract names {message}')


def test_graph_with_other_input_names_is_refused(rewritten):
    def edit(model, entries):
        model.graph.input[1].name = 'goal'
        for node in model.graph.node:
            node.input[:] = ['goal' if name == 'desired_goal' else name for name in node.input]

    refused(
        rewritten(edit),
        r"graph: the contract names inputs .*'desired_goal': 3}; got .*'goal': 3}",
    )


def test_graph_with_other_output_names_is_refused(rewritten):
    def edit(model, entries):
        model.graph.output[0].name = model.graph.node[-1].output[0] = 'command'

    refused(
        rewritten(edit), r"graph: the contract names outputs .*'action': 4}; got {'command': 4}"
    )


def test_graph_of_fixed_batch_size_is_refused(rewritten):
    def edit(model, entries):
        for tensor in model.graph.input:
            tensor.type.tensor_type.shape.dim[0].dim_value = 1

    refused(rewritten(edit), r'graph: .* to be a float tensor \[batch, n\], got \[1, 10\]')


def test_sealed_graph_that_onnxruntime_cannot_run_is_refused(rewritten):
    def edit(model, entries):
        model.ir_version = 10**6

    refused(rewritten(edit), 'is not an ONNX model that onnxruntime can run: ')
