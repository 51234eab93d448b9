"""Open a policy file and run it, with numpy and onnxruntime only."""

from __future__ import annotations

import os
from pathlib import Path
import threading
from typing import Any

from mher_ros.files import read_at_most
from mher_ros.interface import TaskInterface
from mher_ros.policy.contract import Contract, CONTRACT_KEY, PolicyFileError
from mher_ros.policy.graph import check_vectors, read_graph
from mher_ros.policy.seal import is_intact, is_sealed
import numpy as np
from numpy.typing import ArrayLike, NDArray
import onnxruntime

__all__ = ['OnnxPolicy', 'PRODUCER', 'from_bytes', 'load']

MOST_BYTES = 2**27
"""Of a file; the largest network of a preset takes 600 kB."""
LONGEST_ANSWER = 2.0
"""Time for the first inference [s]."""
PRODUCER = 'mher_ros'
"""Producer name of the ONNX models written here; it stands at the start of the file."""


class OnnxPolicy:
    """Observation and goal to action, as the file that ``load`` opened computes it."""

    contract: Contract
    sha256: str
    """Hash that seals the file: its identity, for logs."""

    def __init__(self, path: str, contract: Contract, sha256: str, session: Any) -> None:
        self.contract, self.sha256 = contract, sha256
        self._path, self._session = path, session
        interface = contract.interface
        self._sizes = {'observation': len(interface.observation), 'goal': len(interface.goal)}

    @property
    def interface(self) -> TaskInterface:
        """The task as the policy was trained on it."""
        return self.contract.interface

    def __call__(self, observation: ArrayLike, goal: ArrayLike) -> NDArray[np.float32]:
        """
        Return the action (k,) for an observation (n,) and a goal (m,), or (B, k) for batches.

        Raises ValueError on another shape and on NaN or infinity.
        """
        state = self._checked('observation', observation)
        target = self._checked('goal', goal)
        if state.shape[:-1] != target.shape[:-1]:
            raise ValueError(
                'expected one goal for each observation, '
                f'got observations {state.shape} and goals {target.shape}'
            )
        if state.ndim == 2:
            return self._run(state, target)
        action: NDArray[np.float32] = self._run(state[None], target[None])[0]
        return action

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a path; a file that was replaced since is refused."""
        return _load_same, (self._path, self.sha256)

    def _run(self, state: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
        action: NDArray[np.float32]
        (action,) = self._session.run(['action'], {'observation': state, 'desired_goal': target})
        return action

    def _checked(self, name: str, values: ArrayLike) -> NDArray[np.float32]:
        array = np.asarray(values, np.float32)  # infinite beyond 3e38, so refused below
        size = self._sizes[name]
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise ValueError(f'expected {name} ({size},) or (B, {size}), got {array.shape}')
        if not np.isfinite(array).all():
            raise ValueError(f'expected finite numbers in {name}, got {array}')
        return array


def load(path: str | os.PathLike[str]) -> OnnxPolicy:
    """
    Open the policy file at ``path``, checking all of it before any of it is used.

    PolicyFileError says what is wrong with a file that is missing, damaged, of another format or
    not a policy, or whose contract does not fit its graph.
    """
    where = os.path.abspath(path)
    try:
        data = read_at_most(Path(where), MOST_BYTES)
    except OSError as error:
        raise PolicyFileError(f'{where}: cannot be read: {error.strerror}') from error
    try:
        return from_bytes(data, where)
    except PolicyFileError as error:
        raise PolicyFileError(f'{where}: {error}') from None


def from_bytes(data: bytes, path: str) -> OnnxPolicy:
    """Open the content of the policy file at ``path``, as ``load`` does."""
    if not is_sealed(data):
        raise PolicyFileError(_why_unsealed(data))
    if not is_intact(data):
        raise PolicyFileError('was changed after it was written: its SHA-256 does not match')
    graph = read_graph(data)
    contract = Contract.from_json(graph.contract)
    check_vectors(graph, contract.interface)
    session = _session(data)
    _try(session, contract.interface)
    return OnnxPolicy(path, contract, data[-64:].decode(), session)


def _load_same(path: str, sha256: str) -> OnnxPolicy:
    policy = load(path)
    if policy.sha256 != sha256:
        raise PolicyFileError(f'{path}: expected SHA-256 {sha256}, got {policy.sha256}')
    return policy


def _why_unsealed(data: bytes) -> str:
    if not data:
        return 'is empty'
    if PRODUCER.encode() in data[:32]:
        return 'is cut short, or its end was changed: the SHA-256 that closes the file is missing'
    if CONTRACT_KEY.encode() in data:
        return 'was changed after it was written: the SHA-256 that closes the file is missing'
    return 'is no policy of mher_ros: the SHA-256 that closes such a file is missing'


def _session(data: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    # At batch 1 handing work to other threads takes longer than doing it.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=['CPUExecutionProvider'])
    except Exception as error:  # onnxruntime's errors have no base class of their own
        raise PolicyFileError(f'is not an ONNX model that onnxruntime can run: {error}') from None


def _try(session: Any, interface: TaskInterface) -> None:
    """Refuse a policy that does not answer with an action, or not in time."""
    options = onnxruntime.RunOptions()
    timer = threading.Timer(LONGEST_ANSWER, setattr, (options, 'terminate', True))
    vectors = {'observation': interface.observation, 'desired_goal': interface.goal}
    zeros = {name: np.zeros((1, len(fields)), np.float32) for name, fields in vectors.items()}
    timer.start()
    try:
        (action,) = session.run(['action'], zeros, options)
    except Exception as error:  # as above
        raise PolicyFileError(
            f'graph: expected an action within {LONGEST_ANSWER:g} s, got {error}'
        ) from None
    finally:
        timer.cancel()
    if action.shape != (1, len(interface.action)) or not (np.abs(action) <= 1.0).all():
        raise PolicyFileError(
            f'graph: expected {len(interface.action)} numbers in [-1, 1], got {action}'
        )
