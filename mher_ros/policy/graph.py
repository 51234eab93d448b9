"""A reader of policy files that checks the graph before onnxruntime loads it."""

# An ONNX graph is a program: it can loop for years, or compute constants while it is loaded.
# ``export`` writes only a few operators on vectors, one after the other. This module reads exactly
# these graphs and refuses all others, so that the cost of an inference is known in advance. An
# ONNX file is a tree of protobuf messages; few kinds occur, and reading them needs no library.

from collections.abc import Iterator, Mapping
import dataclasses
import math
import struct
from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.policy.contract import CONTRACT_KEY, PolicyFileError
import numpy as np
from numpy.typing import NDArray

OPSET = 18
MOST_FIELDS = 20_000  # fields of all messages; a network with three hidden layers has 320
WIDEST = 2**16  # entries of one vector
MOST_PRODUCTS = 2**25  # multiplications of one inference: some 20 ms on one core
FLOAT, INT64 = 1, 7
DTYPES: Mapping[int, np.dtype[Any]] = {FLOAT: np.dtype('<f4'), INT64: np.dtype('<i8')}
"""Types of tensors by their numbers in ONNX."""
ATTRIBUTE_FIELDS = {1: 'f', 2: 'i'}  # field of an attribute's value, by its type in ONNX
VARINT, BYTES, FIXED = 0, 2, 5  # wire types of protobuf

Message = dict[str, list[Any]]  # values of each field, by name
Constants = list[NDArray[Any]]
Vectors = dict[str, int]
"""Number of entries of each float vector [batch, n] by name; the batch size is free."""

MESSAGES: Mapping[str, Mapping[int, tuple[str, str]]] = {
    kind: {int(number): (name, what) for number, name, what in map(str.split, fields.split(','))}
    for kind, fields in {
        'model': '1 ir_version int, 2 producer_name text, 7 graph graph, 8 opset_import opset,'
        '14 metadata_props entry*',
        'opset': '1 domain text, 2 version int',
        'entry': '1 key text, 2 value text',
        'graph': '1 node node*, 2 name text, 5 initializer tensor*, 11 input vector*,'
        '12 output vector*',
        'node': '1 input text*, 2 output text*, 3 name text, 4 op_type text,'
        '5 attribute attribute*',
        'attribute': '1 name text, 2 f float, 3 i int, 20 type int',
        'tensor': '1 dims int*, 2 data_type int, 8 name text, 9 raw_data bytes',
        'vector': '1 name text, 2 type type',
        'type': '1 tensor_type tensor_type',
        'tensor_type': '1 elem_type int, 2 shape shape',
        'shape': '1 dim dim*',
        'dim': '1 dim_value int, 2 dim_param text',
    }.items()
}
"""The messages that ``export`` writes: number, name and kind of each field; *: repeated."""


@dataclasses.dataclass(frozen=True)
class Graph:
    contract: str
    inputs: Vectors
    outputs: Vectors


def read_graph(data: bytes) -> Graph:
    """Read the ONNX model in ``data``; PolicyFileError unless ``export`` could have written it."""
    model = _Reader().message('model', memoryview(data))
    metadata: dict[str, str] = {}
    for entry in model.get('metadata_props', []):
        key = _only(entry, 'key', '')
        if key in metadata:
            raise PolicyFileError(f'graph: expected {key[:80]!r} once in the metadata, got more')
        metadata[key] = _only(entry, 'value', '')
    if CONTRACT_KEY not in metadata:
        raise PolicyFileError(
            f'is an ONNX model but no policy of mher_ros: it has no metadata {CONTRACT_KEY!r}'
        )
    opset: Message = _only(model, 'opset_import', {})
    version = _only(opset, 'version', None)
    if version != OPSET or _only(opset, 'domain', ''):
        raise PolicyFileError(f'graph: expected ONNX with opset {OPSET}, got {version}')
    content: Message = _only(model, 'graph', {})
    inputs, outputs = (_vectors(content.get(name, [])) for name in ('input', 'output'))
    _check_nodes(content, inputs, outputs)
    return Graph(metadata[CONTRACT_KEY], inputs, outputs)


def check_vectors(graph: Graph, interface: TaskInterface) -> None:
    """Refuse a graph whose inputs and outputs do not fit ``interface``, for any batch size."""
    inputs = {'observation': interface.observation, 'desired_goal': interface.goal}
    for kind, found, fields in (
        ('inputs', graph.inputs, inputs),
        ('outputs', graph.outputs, {'action': interface.action}),
    ):
        expected = {name: len(entries) for name, entries in fields.items()}
        if found != expected:
            raise PolicyFileError(
                f'graph: the contract names {kind} with these numbers of entries: {expected}; '
                f'got {str(found)[:200]}'
            )


class _Reader:
    def __init__(self) -> None:
        self._left = MOST_FIELDS

    def message(self, kind: str, data: memoryview) -> Message:
        """Return a message; unknown fields are refused."""
        message: Message = {}
        for number, wire, value in self._fields(kind, data):
            name, what = MESSAGES[kind].get(number, ('', ''))
            if not name or wire != {'int': VARINT, 'float': FIXED}.get(what.rstrip('*'), BYTES):
                raise PolicyFileError(f'graph: {kind} has unknown field {number} of type {wire}')
            values = message.setdefault(name, [])
            if values and not what.endswith('*'):
                raise PolicyFileError(f'graph: expected one {name} in {kind}, got more')
            values.append(self._value(name, what.rstrip('*'), value))
        return message

    def _value(self, name: str, what: str, value: Any) -> Any:
        if what == 'text':
            try:
                return str(value, 'utf-8')
            except UnicodeDecodeError as error:
                raise PolicyFileError(f'graph: {name}: expected text; {error}') from None
        if what == 'float':
            return struct.unpack('<f', value)[0]
        if what == 'int':
            return value - 2**64 if value >= 2**63 else value
        return value if what == 'bytes' else self.message(what, value)

    def _fields(self, kind: str, data: memoryview) -> Iterator[tuple[int, int, Any]]:
        place = 0
        while place < len(data):
            self._left -= 1
            if self._left < 0:
                raise PolicyFileError(f'graph: expected at most {MOST_FIELDS} parts, got more')
            key, place = _varint(data, place)
            wire, size = key & 7, 4
            if wire == VARINT:
                value, place = _varint(data, place)
                yield key >> 3, wire, value
                continue
            if wire == BYTES:
                size, place = _varint(data, place)
            if wire not in (BYTES, FIXED) or size > len(data) - place:
                raise PolicyFileError(f'is not an ONNX model: {kind} is no protobuf message')
            yield key >> 3, wire, data[place : place + size]
            place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[place : place + 10]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value % 2**64, place + index + 1
    raise PolicyFileError('is not an ONNX model: it is no protobuf message')


def _only(message: Message, name: str, default: Any) -> Any:
    return message.get(name, [default])[0]


def _vectors(messages: list[Message]) -> Vectors:
    vectors: Vectors = {}
    for message in messages:
        name = _only(message, 'name', '')
        tensor: Message = _only(_only(message, 'type', {}), 'tensor_type', {})
        dims: list[Message] = _only(tensor, 'shape', {}).get('dim', [])
        shape = [_only(dim, 'dim_value', None) for dim in dims]
        if _only(tensor, 'elem_type', 0) != FLOAT or len(shape) != 2 or shape[0] is not None:
            raise PolicyFileError(
                f'graph: expected {name[:80]!r} to be a float tensor [batch, n], got {shape[:10]}'
            )
        vectors[name] = shape[1] or 0
    return vectors


def _check_nodes(graph: Message, inputs: Vectors, outputs: Vectors) -> None:
    """Refuse nodes that ``export`` does not write, and graphs that are too large."""
    # Every node computes a vector [batch, n] from the inputs, so nothing can be computed in
    # advance, and all sizes are known.
    constants = dict(map(_constant, graph.get('initializer', [])))
    widths: dict[str, int] = {}
    products = 0

    def add(name: str, width: int) -> None:
        if not name or name in widths or name in constants:
            raise PolicyFileError(f'graph: expected each name once, got {name[:80]!r} again')
        if not 0 < width <= WIDEST or products > MOST_PRODUCTS:
            raise PolicyFileError(
                f'graph: expected vectors of 1 to {WIDEST} entries and at most {MOST_PRODUCTS} '
                f'products; got {width} entries of {name[:80]!r} and {products} products so far'
            )
        widths[name] = width

    for name, width in inputs.items():
        add(name, width)
    for node in graph.get('node', []):
        names, operator = node.get('input', []), _only(node, 'op_type', '')
        taken = [name for name in names if name in widths]
        fixed = [constants.get(name, NOTHING) for name in names[len(taken) :]]
        width = _width(operator, node, [widths[name] for name in taken], fixed)
        products += width + sum(constant.size for constant in fixed)
        add(_only(node, 'output', ''), width)
    for name, width in outputs.items():
        if widths.get(name) != width:
            raise PolicyFileError(f'graph: no node computes the output {name[:80]!r}')


def _constant(tensor: Message) -> tuple[str, NDArray[Any]]:
    name, dims = _only(tensor, 'name', ''), tensor.get('dims', [])
    dtype, raw = DTYPES.get(_only(tensor, 'data_type', 0)), _only(tensor, 'raw_data', b'')
    is_whole = dtype is not None and len(dims) <= 2 and min(dims, default=1) > 0
    if dtype is None or not is_whole or math.prod(dims) * dtype.itemsize != len(raw):
        raise PolicyFileError(
            f'graph: expected {name[:80]!r} to be float32 or int64, in at most 2 dimensions; '
            f'got {len(raw)} bytes for {str(dims)[:80]}'
        )
    values = np.frombuffer(raw, dtype).reshape(dims)
    if not np.isfinite(values).all():
        raise PolicyFileError(f'graph: expected finite numbers in {name[:80]!r}')
    return name, values


def _width(operator: str, node: Message, vectors: list[int], fixed: Constants) -> int:
    """Return the number of entries of a node's output."""
    if operator not in OPERATORS:
        raise PolicyFileError(
            f'graph: expected the operators {", ".join(OPERATORS)}; got {operator[:80]!r}'
        )
    given = [
        (
            _only(attribute, 'name', ''),
            _only(attribute, ATTRIBUTE_FIELDS.get(_only(attribute, 'type', 0), ''), None),
        )
        for attribute in node.get('attribute', [])
    ]
    width = _given(operator, vectors, fixed) if vectors else 0
    if sorted(given, key=str) != sorted(OPERATORS[operator].items(), key=str) or not width:
        raise PolicyFileError(
            f'graph: expected {operator} as mher_ros writes it, got it of {vectors[:10]} and '
            f'{[constant.shape for constant in fixed[:10]]} with {given[:10]}'
        )
    if len(node.get('output', [])) != 1:
        raise PolicyFileError(f'graph: expected one output of {operator}')
    return width


def _given(operator: str, vectors: list[int], fixed: Constants) -> int:
    """Return the number of entries of an operator's output; 0 if its inputs do not fit."""
    width = vectors[0]
    forms = [(constant.dtype.kind, constant.shape) for constant in fixed]
    if operator == 'Concat':
        return 0 if fixed else sum(vectors)
    if operator in ('Div', 'Mul', 'Sub'):
        fits = len(vectors) + len(fixed) == 2 and len(set(vectors)) == 1
        known = ('f', ()), ('f', (width,))
        return width if fits and all(form in known for form in forms) else 0
    if len(vectors) != 1:
        return 0
    if operator == 'Clip':
        return width if forms == [('f', ())] * 2 else 0
    if operator == 'Slice':
        if forms != [('i', (1,))] * 4:
            return 0
        start, end, axis, step = (int(constant[0]) for constant in fixed)
        return len(range(width)[start:end]) if (axis, step) == (1, 1) else 0
    if operator == 'Gemm':
        outputs = fixed[0].shape[0] if fixed and fixed[0].ndim == 2 else 0
        layer = [('f', (outputs, width)), ('f', (outputs,))]
        return outputs if forms in (layer[:1], layer) else 0
    return 0 if fixed else width


NOTHING: NDArray[Any] = np.empty((0, 0, 0), np.bool_)  # the value of an unknown name
OPERATORS: Mapping[str, Mapping[str, float]] = {
    **dict.fromkeys(('Clip', 'Cos', 'Div', 'Mul', 'Relu', 'Sin', 'Slice', 'Sub', 'Tanh'), {}),
    'Concat': {'axis': -1},
    'Gemm': {'alpha': 1.0, 'beta': 1.0, 'transB': 1},
}
"""The operators that ``export`` writes, each with its attributes."""
