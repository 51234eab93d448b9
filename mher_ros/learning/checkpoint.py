"""Checkpoint files, protected by a checksum."""

import hashlib
import io
from pathlib import Path
from typing import Any

from mher_ros.errors import MherError
from mher_ros.files import write_atomically
import numpy as np
from numpy.typing import NDArray

# torch is imported by what needs it: `mher view` reads episodes, and starts 2 s sooner without.

# One line with the format and the SHA-256 of the rest, then what ``torch.save`` writes. Only
# tensors, numbers and text are unpickled.
MAGIC = b'mher_ros checkpoint 1 '


class CheckpointError(MherError, RuntimeError):
    """A checkpoint cannot be written or read."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write ``state``; after an error an existing checkpoint is unchanged."""
    import torch

    payload = io.BytesIO()
    torch.save(state, payload)
    content = payload.getvalue()
    digest = hashlib.sha256(content).hexdigest().encode()
    try:
        write_atomically(path, MAGIC + digest + b'\n' + content)
    except OSError as error:
        reason = f'{error.strerror}{"; the previous checkpoint is kept" if path.exists() else ""}'
        raise CheckpointError(f'cannot write the checkpoint {path}: {reason}') from error


def load_checkpoint(path: Path) -> dict[str, Any]:
    import torch

    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f'there is no checkpoint {path}') from None
    except OSError as error:
        raise CheckpointError(f'cannot read the checkpoint {path}: {error.strerror}') from error
    header, _, payload = content.partition(b'\n')
    if not header.startswith(MAGIC):
        raise CheckpointError(
            f'{path} is not a checkpoint of this version: expected {MAGIC!r} as the first bytes, '
            f'got {content[:24]!r}'
        )
    if hashlib.sha256(payload).hexdigest().encode() != header[len(MAGIC) :]:
        raise CheckpointError(f'the checkpoint {path} is damaged: wrong checksum')
    try:
        state = torch.load(io.BytesIO(payload), weights_only=True)
    except Exception as error:  # torch raises many types of errors
        reason = str(error).splitlines()[:1] or [type(error).__name__]
        raise CheckpointError(f'{path} holds no state of a run: {reason[0]}') from None
    if not isinstance(state, dict):
        raise CheckpointError(f'{path} holds no state of a run, but a {type(state).__name__}')
    return state


def check_same_structure(where: str, found: Any, expected: Any) -> None:
    """Raise ValueError unless keys, types, shapes and dtypes agree and tensors are finite."""
    from torch import Tensor

    if type(found) is not type(expected):
        raise ValueError(
            f'{where}: expected a {type(expected).__name__}, got a {type(found).__name__}'
        )
    if isinstance(expected, dict):
        if found.keys() != expected.keys():
            differ = sorted(map(str, found.keys() ^ expected.keys()))
            raise ValueError(f'{where}: the keys differ: {", ".join(differ[:5])}')
        for key, value in expected.items():
            check_same_structure(f'{where}.{key}', found[key], value)
    elif isinstance(expected, Tensor):
        check_array(where, found.numpy(), expected.numpy())


def check_array(where: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Raise ValueError unless shape and dtype agree and all numbers are finite."""
    kinds = [f'{array.dtype} of shape {array.shape}' for array in (expected, found)]
    if kinds[0] != kinds[1] or not np.isfinite(found).all():
        raise ValueError(f'{where}: expected finite {kinds[0]}, got {kinds[1]}')
