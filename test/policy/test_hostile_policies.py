"""Policy files that were sealed anew with something else inside."""

import json
import os
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.learning.config import AgentConfig
from mher_ros.learning.core.networks import Actor, InputEncoder, Policy
from mher_ros.policy import load, PolicyFileError
from mher_ros.policy.contract import CONTRACT_KEY
from mher_ros.policy.export import traced
from mher_ros.policy.graph import OPERATORS
from mher_ros.policy.onnx_policy import _hash, from_bytes, MOST_BYTES, seal
from mher_ros.tasks import make
import numpy as np
import onnx
from onnx import helper, TensorProto
import pytest
import torch


def node_before(model, operator, *inputs, output='made', **attributes):
    """Put a node first in the graph."""
    model.graph.node.insert(0, helper.make_node(operator, inputs, [output], **attributes))


def constant(model, name, array):
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name))
    return name


def loop(model):
    body = helper.make_graph(
        [
            helper.make_node('Identity', ['go'], ['goes']),
            helper.make_node('Identity', ['before'], ['after']),
        ],
        'body',
        [
            helper.make_tensor_value_info('count', TensorProto.INT64, []),
            helper.make_tensor_value_info('go', TensorProto.BOOL, []),
            helper.make_tensor_value_info('before', TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info('goes', TensorProto.BOOL, []),
            helper.make_tensor_value_info('after', TensorProto.FLOAT, None),
        ],
    )
    times = constant(model, 'times', np.int64(2**62))
    goes = constant(model, 'always', np.bool_(True))
    node_before(model, 'Loop', times, goes, 'observation', body=body)


def folded_products(model):
    names = [constant(model, 'c0', np.ones((500, 500), np.float32))]
    for index in range(1, 50):
        model.graph.node.insert(
            index - 1, helper.make_node('MatMul', [names[-1], 'c0'], [f'c{index}'])
        )
        names.append(f'c{index}')


def folded_layers(model):
    constant(model, 'c0', np.ones((500, 500), np.float32))
    for index in range(1, 50):
        gemm = {'alpha': 1.0, 'beta': 1.0, 'transB': 1}
        model.graph.node.insert(
            index - 1, helper.make_node('Gemm', [f'c{index - 1}', 'c0'], [f'c{index}'], **gemm)
        )


def doubling(model):
    before = 'observation'
    for index in range(60):
        made = helper.make_node('Concat', [before, before], [f'd{index}'], axis=-1)
        model.graph.node.insert(index, made)
        before = f'd{index}'


def repeated_layers(model):
    constant(model, 'first', np.ones((2000, 10), np.float32))
    constant(model, 'again', np.ones((2000, 2000), np.float32))
    gemm = {'alpha': 1.0, 'beta': 1.0, 'transB': 1}
    model.graph.node.insert(0, helper.make_node('Gemm', ['observation', 'first'], ['g0'], **gemm))
    for index in range(1, 100):
        model.graph.node.insert(
            index, helper.make_node('Gemm', [f'g{index - 1}', 'again'], [f'g{index}'], **gemm)
        )


def many_nodes(model):
    for index in range(20_000):
        model.graph.node.append(helper.make_node('Relu', ['observation'], [f'r{index}']))


def broadcast(model):
    constant(model, 'tall', np.ones((1000, 1), np.float32))
    node_before(model, 'Mul', 'observation', 'tall')


def external(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField('raw_data')
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key='location', value='/etc/passwd')


def weights(change):
    def edit(model):
        tensor = next(one for one in model.graph.initializer if len(one.dims) == 2)
        change(tensor)

    return edit


def nan_weights(tensor):
    tensor.raw_data = np.full(tensor.dims, np.nan, np.float32).tobytes()


def vast_dimensions(tensor):
    tensor.dims[:] = [2**40, 2**40]


def negative_dimensions(tensor):
    tensor.dims[:] = [-1, -1]


def other_type(tensor):
    tensor.data_type = TensorProto.STRING


def numbers_elsewhere(tensor):
    tensor.ClearField('raw_data')
    tensor.float_data.extend([0.0] * int(np.prod(tensor.dims)))


def every(operator, attribute, value):
    def edit(model):
        node = next(one for one in model.graph.node if one.op_type == operator)
        entry = next((one for one in node.attribute if one.name == attribute), None)
        if entry is not None:
            node.attribute.remove(entry)
        node.attribute.append(helper.make_attribute(attribute, value))

    return edit


HOSTILE = {
    'loop': loop,
    'folded products': folded_products,
    'folded layers': folded_layers,
    'doubling': doubling,
    'repeated layers': repeated_layers,
    'many nodes': many_nodes,
    'broadcast': broadcast,
    'external data': external,
    'nan': weights(nan_weights),
    'vast dimensions': weights(vast_dimensions),
    'negative dimensions': weights(negative_dimensions),
    'text for numbers': weights(other_type),
    'numbers elsewhere': weights(numbers_elsewhere),
    'other attribute': every('Gemm', 'transB', 0),
    'unknown attribute': every('Relu', 'slope', 0.1),
    'attribute of another type': every('Gemm', 'transB', 'no'),
    'graph as an attribute': every('Relu', 'body', helper.make_graph([], 'g', [], [])),
    'tensor as an attribute': every('Relu', 'value', helper.make_tensor('t', 1, [1], [1.0])),
    'operators of others': lambda model: setattr(model.graph.node[0], 'domain', 'com.microsoft'),
    'other opset': lambda model: setattr(model.opset_import[0], 'version', 7),
    'second opset': lambda model: model.opset_import.add(domain='com.microsoft', version=1),
    'node twice': lambda model: model.graph.node.append(model.graph.node[0]),
    'nodes in another order': lambda model: model.graph.node.reverse(),
    'no nodes': lambda model: model.graph.ClearField('node'),
    'no graph': lambda model: model.ClearField('graph'),
    'sparse tensor': lambda model: model.graph.sparse_initializer.add(dims=[2]),
    'third input': lambda model: model.graph.input.append(
        helper.make_tensor_value_info('more', TensorProto.FLOAT, ['batch', 3])
    ),
    'text': lambda model: setattr(model, 'doc_string', 'x' * 100),
}


@pytest.mark.parametrize('name', HOSTILE)
def test_a_graph_that_no_export_writes_is_refused_before_it_is_run(rewritten, name):
    path = rewritten(lambda model, entries: HOSTILE[name](model))
    began = time.process_time()
    with pytest.raises(PolicyFileError, match='graph'):
        load(path)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    'name', [b'observation', b'action', b'Relu', CONTRACT_KEY.encode(), b'batch', b'fetch_reach']
)
def test_names_that_are_no_text_are_refused(exported, tmp_path, name):
    content = exported.path.read_bytes()
    assert name in content
    path = tmp_path / 'policy.onnx'
    path.write_bytes(sealed(content.replace(name, b'\xff' * len(name))))
    with pytest.raises(PolicyFileError):
        load(path)


@pytest.mark.parametrize('field', [3, 4, 5, 6, 20, 25, 26, 1000])
def test_parts_of_onnx_that_no_export_writes_are_refused(exported, tmp_path, field):
    """Among them training information (20), functions (25) and devices (26)."""
    key = field << 3 | 2
    varint = bytes([key & 0x7F | 0x80, key >> 7]) if key > 0x7F else bytes([key])
    path = tmp_path / 'policy.onnx'
    path.write_bytes(sealed(varint + b'\0' + exported.path.read_bytes()))
    with pytest.raises(PolicyFileError, match=f'field {field} '):
        load(path)


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_whatever_is_changed_a_sealed_file_is_refused_or_runs(exported, data):
    content = bytearray(exported.path.read_bytes()[:-64])
    # Weights are most of the file, and the least of it that can go wrong.
    weights = content.index(b'actor.layers')
    parts = [range(weights), range(content.index(CONTRACT_KEY.encode()) - 2000, len(content) - 20)]
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.sampled_from(data.draw(st.sampled_from(parts))))
        how = data.draw(st.sampled_from(('change', 'remove', 'insert')))
        if how == 'change':
            content[place] = data.draw(st.integers(0, 255))
        elif how == 'remove':
            del content[place : place + data.draw(st.integers(1, 40))]
        else:
            content[place:place] = data.draw(st.binary(min_size=1, max_size=40))
    try:
        policy = from_bytes(sealed(bytes(content) + b'0' * 64))
        sizes = len(policy.interface.observation), len(policy.interface.goal)
        assert policy(*map(np.zeros, sizes)).shape == (len(policy.interface.action),)
    except PolicyFileError as error:
        str(error).encode()


@pytest.mark.parametrize(
    ('keys', 'value'),
    [
        (('interface', 'task'), '\ud800'),
        (('interface', 'frame'), 'a\nb'),
        (('interface', 'observation', 0, 'name'), '\0'),
        (('interface', 'observation', 0, 'nominal'), 1e300),
        (('interface', 'control_period'), 1e-320),
        (('interface', 'episode_steps'), 10**300),
        (('interface', 'goal_low', 0), -1e308),
        (('interface', '\ud800'), 1),
        (('training', 'config'), json.loads('[' * 500 + ']' * 500)),
        (('training', '\ud800'), float('nan')),
        (('training', 'note'), 'x' * 2**20),
        (('evaluation', 'success_rate'), 'all of them'),
        (('evaluation', 'success_rate'), [1.0]),
        (('evaluation', 'success_rate'), 7.0),
        (('evaluation',), None),
        (('format_version',), True),
    ],
    ids=lambda part: ascii(part[-1]) if type(part) is tuple else '',
)
def test_a_contract_of_wrong_values_is_refused(rewritten, keys, value):
    def edit(model, entries):
        values = part = json.loads(entries[CONTRACT_KEY])
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value
        entries[CONTRACT_KEY] = json.dumps(values)

    with pytest.raises(PolicyFileError) as told:
        load(rewritten(edit))
    str(told.value).encode()  # it can be logged
    assert len(str(told.value)) < 2000


def test_a_contract_deeper_than_python_goes_is_refused(rewritten):
    deep = '[' * 100_000 + ']' * 100_000
    with pytest.raises(PolicyFileError, match='contract'):
        load(rewritten(lambda model, entries: entries.update({CONTRACT_KEY: deep})))


def test_a_file_that_is_too_large_and_a_pipe_are_not_read(tmp_path):
    large, pipe = tmp_path / 'large.onnx', tmp_path / 'pipe.onnx'
    with large.open('wb') as file:
        file.truncate(MOST_BYTES + 1)
    os.mkfifo(pipe)
    for path in (large, pipe):
        with pytest.raises(PolicyFileError, match='cannot be read'):
            load(path)


def test_a_policy_whose_first_action_is_none_is_refused(rewritten):
    def edit(model, entries):
        model.graph.node[-1].op_type = 'Div'
        model.graph.node[-1].input.append(constant(model, 'zero', np.float32(0.0)))

    with pytest.raises(PolicyFileError, match='numbers in'):
        load(rewritten(edit))


def test_an_export_writes_every_operator_that_is_allowed():
    """With all that a network may have; fewer operators do for simpler ones."""
    interface = make('fetch_reach').interface
    config = AgentConfig(
        relative_goal=True,
        mask_constant_inputs=True,
        fourier_features=2,
        workspace_normalisation=True,
    )
    view = InputEncoder(interface, config)
    actor = Actor(view.size, len(interface.action), (8, 8), torch.Generator().manual_seed(0))
    sizes = {'observation': len(interface.observation), 'desired_goal': len(interface.goal)}
    model = traced(Policy(view, actor), sizes)
    assert {node.op_type for node in model.graph.node} == set(OPERATORS)


def sealed(content):
    """Return the file with the seal that its bytes now have."""
    return content[:-64] + _hash(content)


def test_the_seal_here_is_that_of_the_exporter(exported):
    content = exported.path.read_bytes()
    assert sealed(content) == content == seal(content[:-64] + b'0' * 64)
