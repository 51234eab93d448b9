"""Find, load and run a policy file, with numpy and onnxruntime only."""

import hashlib
import os
from pathlib import Path
import threading
from typing import Any

from mher_ros.files import POLICY, read_at_most
from mher_ros.interface import TaskInterface
from mher_ros.policy.contract import Contract, CONTRACT_KEY, PolicyFileError
from mher_ros.policy.graph import check_vectors, read_graph
import numpy as np
from numpy.typing import ArrayLike, NDArray
import onnxruntime

MOST_BYTES = 2**27  # of a file; the largest network of a preset has 600 kB
LONGEST_INFERENCE = 2.0  # limit for the first inference [s]
PRODUCER = 'mher_ros'  # producer name of the ONNX models, at the start of the file
SEAL_KEY = 'mher_ros.sha256'
BLANK = '0' * 64  # value of that entry before sealing
_BEFORE_VALUE = SEAL_KEY.encode() + b'\x12\x40'  # protobuf: field 2 follows, 64 bytes long


class OnnxPolicy:
    """The function of a policy file: observation and goal to action."""

    def __init__(self, contract: Contract, sha256: str, session: Any) -> None:
        self.contract, self._session = contract, session
        self.sha256 = sha256  # hash that seals the file; it identifies the policy in logs
        interface = contract.interface
        self._sizes = {'observation': len(interface.observation), 'goal': len(interface.goal)}

    @property
    def interface(self) -> TaskInterface:
        return self.contract.interface

    def __call__(self, observation: ArrayLike, goal: ArrayLike) -> NDArray[np.float32]:
        """
        Return the action (k,) of an observation (n,) and a goal (m,), or (B, k) of batches.

        ValueError for other shapes, NaN or infinity.
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
        return self._run(state[None], target[None])[0]

    def _run(self, state: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
        return self._session.run(['action'], {'observation': state, 'desired_goal': target})[0]

    def _checked(self, name: str, values: ArrayLike) -> NDArray[np.float32]:
        array = np.asarray(values, np.float32)  # numbers above 3e38 become infinite
        size = self._sizes[name]
        if array.ndim not in (1, 2) or array.shape[-1] != size:
            raise ValueError(f'expected {name} ({size},) or (B, {size}), got {array.shape}')
        if not np.isfinite(array).all():
            raise ValueError(f'expected finite numbers in {name}, got {array}')
        return array


def load(path: str | os.PathLike[str]) -> OnnxPolicy:
    """
    Load the policy file at ``path``; all of it is checked before any part is used.

    PolicyFileError if it is missing, damaged, of another format or no policy, or if its contract
    does not fit its graph.
    """
    where = os.path.abspath(path)
    try:
        data = read_at_most(Path(where), MOST_BYTES)
    except OSError as error:
        raise PolicyFileError(f'{where}: cannot be read: {error.strerror}') from error
    try:
        return from_bytes(data)
    except PolicyFileError as error:
        raise PolicyFileError(f'{where}: {error}') from None


def from_bytes(data: bytes) -> OnnxPolicy:
    """Load a policy from the content of a file."""
    if not data[:-64].endswith(_BEFORE_VALUE):
        raise PolicyFileError(_why_unsealed(data))
    if data[-64:] != _hash(data):
        raise PolicyFileError('was changed after it was written: its SHA-256 does not match')
    graph = read_graph(data)
    contract = Contract.from_json(graph.contract)
    check_vectors(graph, contract.interface)
    session = _session(data)
    _try(session, contract.interface)
    return OnnxPolicy(contract, data[-64:].decode(), session)


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
    # With batch size 1, more threads take longer.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(data, options, providers=['CPUExecutionProvider'])
    except Exception as error:  # onnxruntime's errors have no common base class
        raise PolicyFileError(f'is not an ONNX model that onnxruntime can run: {error}') from None


def _try(session: Any, interface: TaskInterface) -> None:
    """Refuse a policy whose first inference gives no valid action in time."""
    options = onnxruntime.RunOptions()
    timer = threading.Timer(LONGEST_INFERENCE, setattr, (options, 'terminate', True))
    vectors = {'observation': interface.observation, 'desired_goal': interface.goal}
    zeros = {name: np.zeros((1, len(fields)), np.float32) for name, fields in vectors.items()}
    timer.start()
    try:
        (action,) = session.run(['action'], zeros, options)
    except Exception as error:  # as above
        within = f'an action within {LONGEST_INFERENCE:g} s'
        raise PolicyFileError(f'graph: expected {within}, got {error}') from None
    finally:
        timer.cancel()
    if action.shape != (1, len(interface.action)) or not (np.abs(action) <= 1.0).all():
        count = len(interface.action)
        raise PolicyFileError(f'graph: expected {count} numbers in [-1, 1], got {action}')


def find_policy(given: str, runs: str = 'runs') -> Path:
    """Return the policy file of a file or run folder ``given``; '': the newest in ``runs``."""
    if given:
        path = Path(given).expanduser()
        return path / POLICY if path.is_dir() else path
    written = [(path.stat().st_mtime, path) for path in Path(runs).glob(f'**/{POLICY}')]
    if not written:
        raise PolicyFileError(
            f'no policy was given, and there is none below {Path(runs).resolve()}: train one, or '
            'give its file or the folder of its run'
        )
    return max(written)[1]


def seal(blank: bytes) -> bytes:
    """
    Fill in the hash of a serialised model whose last metadata entry holds ``BLANK``.

    The last 64 bytes of the file are the SHA-256, in hex, of all bytes before them. It can be
    checked before the file is parsed (in a shell: ``head -c -64 policy.onnx | sha256sum``). It
    detects accidents and careless edits; it is no signature, because anyone can seal a file again.
    Every format version has this seal, so that a newer file differs from a damaged one.
    """
    if not blank.endswith(_BEFORE_VALUE + BLANK.encode()):
        raise ValueError(f'the last entry of the model must be {SEAL_KEY!r}, left blank')
    return blank[:-64] + _hash(blank)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(memoryview(data)[:-64]).hexdigest().encode()
