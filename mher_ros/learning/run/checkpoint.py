"""Checkpoint files, protected by a checksum."""

import hashlib
import io
from pathlib import Path
from typing import Any

from mher_ros.errors import MherError
from mher_ros.files import write_atomically
import torch

# One line with the format and the SHA-256 of the rest, then what ``torch.save`` writes. Only
# tensors, numbers and text are unpickled.
MAGIC = b'mher_ros checkpoint 1 '


class CheckpointError(MherError, RuntimeError):
    """A checkpoint cannot be written or read."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write ``state``; after an error an existing checkpoint is unchanged."""
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
