"""Write a trained policy as one ONNX file, and only if the file acts as the policy does."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import copy
import logging
import os
from pathlib import Path
from typing import Any
import warnings

from mher_ros.files import write_atomically
from mher_ros.policy.contract import Contract, CONTRACT_KEY, PolicyFileError
from mher_ros.policy.graph import OPSET
from mher_ros.policy.run import from_bytes, PRODUCER
from mher_ros.policy.seal import BLANK, seal, SEAL_KEY
import numpy as np
from numpy.typing import ArrayLike, NDArray
import torch
from torch import nn

__all__ = ['export_policy', 'TOLERANCE', 'traced']

TOLERANCE = 1e-5
"""Largest difference between actions of the file and of the policy on recorded states."""


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
    [-1, 1]. Before the file is written it is opened as ``load`` does and must give the same
    actions for the recorded ``observations`` (N, n) and ``goals`` (N, m), together and one by
    one. If anything fails PolicyFileError says what, and a file that was at ``path`` before is
    still there, untouched.
    """
    target = Path(path).absolute()
    text = contract.to_json()
    states, targets = _recorded(contract, observations, goals)
    policy = copy.deepcopy(policy).cpu().eval()  # the learner's own goes on training as it was
    expected = _actions(policy, states, targets)
    interface = contract.interface
    inputs = {'observation': len(interface.observation), 'desired_goal': len(interface.goal)}
    data = _packed(traced(policy, inputs, 'action'), text)
    exported = from_bytes(data, str(target))
    pairs = zip(states, targets, strict=True)
    _check_same('together', exported(states, targets), expected)
    _check_same('one by one', np.stack([exported(*pair) for pair in pairs]), expected)
    try:
        write_atomically(target, data)
    except OSError as error:
        raise PolicyFileError(f'{target}: cannot be written: {error.strerror}') from error


def traced(module: nn.Module, inputs: dict[str, int], output: str) -> Any:
    """
    Return the ONNX model of ``module`` for any batch size, without what this machine adds to it.

    ``inputs`` are the sizes of what it is given, by name: tensors (B, size), in order.
    """
    batch = torch.export.Dim('batch')
    with _quiet():
        program = torch.onnx.export(
            module,
            # A batch of 1 would be taken as fixed.
            tuple(torch.zeros(2, size) for size in inputs.values()),
            input_names=list(inputs),
            output_names=[output],
            opset_version=OPSET,
            dynamo=True,
            external_data=False,
            dynamic_shapes=tuple({0: batch} for _ in inputs),
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    # The exporter notes where on this machine the source of every node lies.
    graph = model.graph
    del graph.value_info[:]
    for part in (model, graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]
        part.ClearField('doc_string')
    model.producer_name = PRODUCER
    model.ClearField('producer_version')
    return model


def _packed(model: Any, contract: str) -> bytes:
    """Return the sealed file: same weights and contract, same bytes."""
    for key, value in ((CONTRACT_KEY, contract), (SEAL_KEY, BLANK)):
        model.metadata_props.add(key=key, value=value)
    return seal(model.SerializeToString(deterministic=True))


def _recorded(
    contract: Contract, observations: ArrayLike, goals: ArrayLike
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the recorded states and goals as the file will see them."""
    checked = []
    for name, values, fields in (
        ('observations', observations, contract.interface.observation),
        ('goals', goals, contract.interface.goal),
    ):
        recorded = np.asarray(values, np.float32)
        if recorded.ndim != 2 or not len(recorded) or recorded.shape[1] != len(fields):
            raise ValueError(f'expected {name} (N, {len(fields)}), got {recorded.shape}')
        checked.append(recorded)
    return checked[0], checked[1]


@torch.no_grad()
def _actions(
    policy: nn.Module, observations: NDArray[np.float32], goals: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the policy's actions (N, k)."""
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
            f'the exported graph does not act as the policy does: over {len(expected)} recorded '
            f'states, {how}, actions differ by up to {difference:.2g}; '
            f'expected {TOLERANCE:.0e} at most'
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's warnings, which are about its own insides, off the terminal."""
    logger = logging.getLogger('torch.onnx')
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            yield
    finally:
        logger.setLevel(level)
