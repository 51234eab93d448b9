"""Write a trained policy as one ONNX file, after checking that both give the same actions."""

import copy
import io
import os
from pathlib import Path
from typing import Any
import warnings

from mher_ros.files import write_atomically
from mher_ros.policy.contract import Contract, CONTRACT_KEY, PolicyFileError
from mher_ros.policy.graph import OPSET
from mher_ros.policy.onnx_policy import BLANK, from_bytes, PRODUCER, seal, SEAL_KEY
import numpy as np
from numpy.typing import ArrayLike, NDArray
import onnx
import torch
from torch import nn

TOLERANCE = 1e-5  # largest difference between the actions of file and policy


def export_policy(
    policy: nn.Module,
    contract: Contract,
    path: str | os.PathLike[str],
    observations: ArrayLike,
    goals: ArrayLike,
) -> None:
    """
    Write ``policy`` with its ``contract`` to ``path``.

    ``policy(observation, desired_goal)`` maps tensors (B, n) and (B, m) to actions (B, k) in
    [-1, 1]. Before it is written, the file must load and give the same actions for the recorded
    ``observations`` (N, n) and ``goals`` (N, m), as a batch and one by one. PolicyFileError says
    what fails; an older file at ``path`` is then unchanged.
    """
    target = Path(path).absolute()
    text = contract.to_json()
    interface = contract.interface
    inputs = {'observation': len(interface.observation), 'desired_goal': len(interface.goal)}
    states = _recorded('observations', observations, inputs['observation'])
    targets = _recorded('goals', goals, inputs['desired_goal'])
    policy = copy.deepcopy(policy).cpu().eval()  # the learner's policy stays as it is
    expected = _actions(policy, states, targets)
    model = traced(policy, inputs)
    for key, value in ((CONTRACT_KEY, text), (SEAL_KEY, BLANK)):
        model.metadata_props.add(key=key, value=value)
    data = seal(model.SerializeToString(deterministic=True))  # same weights, same bytes
    exported = from_bytes(data)
    pairs = zip(states, targets, strict=True)
    _check_same('as a batch', exported(states, targets), expected)
    _check_same('one by one', np.stack([exported(*pair) for pair in pairs]), expected)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise PolicyFileError(f'{target}: cannot be written: {error.strerror}') from error


def traced(module: nn.Module, inputs: dict[str, int]) -> Any:
    """Return the ONNX model of ``module`` for tensors (B, size); ``inputs``: sizes by name."""
    # Not dynamo=True: for these networks it writes the same operators, but takes 9.6 s of
    # CPU time instead of 0.3 s, longer than the `fast` preset learns, and needs onnxscript.
    buffer: Any = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # about the exporter's own code
        torch.onnx.export(
            module,
            tuple(torch.zeros(2, size) for size in inputs.values()),
            buffer,
            input_names=list(inputs),
            output_names=['action'],
            opset_version=OPSET,
            dynamo=False,
            dynamic_axes={name: {0: 'batch'} for name in (*inputs, 'action')},
        )
    model = onnx.load_model_from_string(buffer.getvalue())
    graph, model.producer_name = model.graph, PRODUCER
    model.ClearField('producer_version')
    # In a policy file all constants are initializers. Identity stands for two equal ones.
    known = {tensor.name: tensor for tensor in graph.initializer}
    for node in [node for node in graph.node if node.op_type in ('Constant', 'Identity')]:
        is_copy = node.op_type == 'Identity'
        tensor = graph.initializer.add()
        tensor.CopyFrom(known[node.input[0]] if is_copy else node.attribute[0].t)
        tensor.name = node.output[0]
        graph.node.remove(node)
    for node in graph.node:
        node.ClearField('name')  # its output names it
    return model


def _recorded(name: str, values: ArrayLike, size: int) -> NDArray[np.float32]:
    recorded = np.asarray(values, np.float32)
    if recorded.ndim != 2 or not len(recorded) or recorded.shape[1] != size:
        raise ValueError(f'expected {name} (N, {size}), got {recorded.shape}')
    return recorded


@torch.no_grad()
def _actions(
    policy: nn.Module, observations: NDArray[np.float32], goals: NDArray[np.float32]
) -> NDArray[np.float32]:
    actions: NDArray[np.float32] = policy(
        torch.from_numpy(observations), torch.from_numpy(goals)
    ).numpy()
    outside = ~(np.abs(actions) <= 1)  # true for NaN
    if outside.any():
        raise PolicyFileError(f'expected actions in [-1, 1], the policy gives {actions[outside]}')
    return actions


def _check_same(how: str, actions: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    difference = np.abs(actions - expected).max()
    if not difference <= TOLERANCE:
        raise PolicyFileError(
            f'actions of file and policy differ by up to {difference:.2g} over {len(expected)} '
            f'recorded states, {how}; expected at most {TOLERANCE:.0e}'
        )
