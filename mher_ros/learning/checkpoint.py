"""
Checkpoints: one file that is whole or an error.

A line of text with the format and the SHA-256 of the rest, then what ``torch.save`` writes. It
holds tensors, numbers and text only and is read without unpickling anything else.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from pathlib import Path
from typing import Any

from mher_ros.errors import MherError
from mher_ros.files import write_atomically
import torch
from torch import Tensor

__all__ = ['check_alike', 'CheckpointError', 'load_checkpoint', 'previous_path', 'save_checkpoint']

MAGIC = b'mher_ros checkpoint 1 '


class CheckpointError(MherError, RuntimeError):
    """A checkpoint that cannot be written or read; the message says which and why."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write ``state``; the checkpoint that was there stays as ``previous_path(path)``."""
    payload = io.BytesIO()
    torch.save(state, payload)
    content = payload.getvalue()
    digest = hashlib.sha256(content).hexdigest().encode()
    try:
        _keep_previous(path)
        write_atomically(path, MAGIC + digest + b'\n' + content)
    except OSError as error:
        kept = 'the one before is kept' if path.exists() else 'there is none yet'
        raise CheckpointError(
            f'cannot write the checkpoint {path} ({error.strerror}); {kept}'
        ) from error


def previous_path(path: Path) -> Path:
    """Return where the checkpoint before the one at ``path`` is kept."""
    return path.with_name(f'{path.name}.previous')


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what ``save_checkpoint`` wrote."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f'there is no checkpoint {path}') from None
    except OSError as error:
        raise CheckpointError(f'cannot read the checkpoint {path} ({error.strerror})') from error
    header, _, payload = content.partition(b'\n')
    if not header.startswith(MAGIC):
        raise CheckpointError(
            f'{path} is not a checkpoint of this version: it should begin with '
            f'{MAGIC.decode().strip()!r}, it begins with {content[:24]!r}{_way_on(path)}'
        )
    if hashlib.sha256(payload).hexdigest().encode() != header[len(MAGIC) :]:
        raise CheckpointError(
            f'the checkpoint {path} is damaged: its {len(payload)} bytes are not those that were '
            f'written{_way_on(path)}'
        )
    try:
        state = torch.load(io.BytesIO(payload), weights_only=True)
    except Exception as error:  # torch's reader raises nearly anything
        reason = str(error).splitlines()[:1] or [type(error).__name__]
        raise CheckpointError(f'{path} holds no state of a run: {reason[0]}') from None
    if not isinstance(state, dict):
        raise CheckpointError(f'{path} holds no state of a run, but a {type(state).__name__}')
    return state


def check_alike(where: str, found: Any, expected: Any) -> None:
    """
    Raise ValueError unless ``found`` could be a later state of what ``expected`` is a state of.

    It has the same keys, kinds of values and types and shapes of tensors; numbers are finite.
    """
    if type(found) is not type(expected):
        raise ValueError(
            f'{where}: a {type(expected).__name__} is expected, got a {type(found).__name__}'
        )
    if isinstance(expected, dict):
        if found.keys() != expected.keys():
            differ = sorted(map(str, found.keys() ^ expected.keys()))
            raise ValueError(f'{where}: only one of the two has {", ".join(differ[:5])}')
        for key, value in expected.items():
            check_alike(f'{where}.{key}', found[key], value)
    elif isinstance(expected, Tensor):
        if found.dtype != expected.dtype or found.shape != expected.shape:
            raise ValueError(
                f'{where}: {tuple(expected.shape)} of {expected.dtype} is expected, got '
                f'{tuple(found.shape)} of {found.dtype}'
            )
        if not torch.isfinite(found).all():
            raise ValueError(f'{where}: finite numbers are expected')


def _keep_previous(path: Path) -> None:
    # Some file systems have no links; a spare copy is not worth failing for.
    with contextlib.suppress(OSError):
        if path.exists():
            previous_path(path).unlink(missing_ok=True)
            os.link(path, previous_path(path))


def _way_on(path: Path) -> str:
    previous = previous_path(path)
    return f'; {previous} is the one before it' if previous.exists() else ''
