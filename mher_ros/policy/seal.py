"""
The seal at the end of a policy file: any byte changed, added or lost shows.

The last metadata entry of the ONNX model is ``mher_ros.sha256``, so the last 64 bytes of the file
are its value: the SHA-256, in hex, of all bytes before them, graph, weights and contract alike.
Checking it takes neither onnx nor an ONNX parser (nor Python: ``head -c -64 policy.onnx |
sha256sum``), so it comes before anything else that reads the file. It guards
against accidents and careless edits; it is no signature, since whoever rewrites the file can
seal it again.

Every format version keeps this seal, so that a newer file is told from a damaged one.
"""

from __future__ import annotations

import hashlib

__all__ = ['BLANK', 'SEAL_KEY', 'is_intact', 'is_sealed', 'seal']

SEAL_KEY = 'mher_ros.sha256'
BLANK = '0' * 64
"""Value of the entry until it is sealed."""

_BEFORE_VALUE = SEAL_KEY.encode() + b'\x12\x40'  # protobuf: field 2 follows, 64 bytes long


def seal(blank: bytes) -> bytes:
    """Fill in the hash of a serialised model whose last metadata entry holds ``BLANK``."""
    if not blank.endswith(_BEFORE_VALUE + BLANK.encode()):
        raise ValueError(f'the last entry of the model must be {SEAL_KEY!r}, left blank')
    return blank[:-64] + _hash(blank)


def is_sealed(data: bytes) -> bool:
    """Return whether the file ends in a seal, right or wrong."""
    return data[:-64].endswith(_BEFORE_VALUE)


def is_intact(data: bytes) -> bool:
    """Return whether a sealed file is, byte for byte, the one that was sealed."""
    return data[-64:] == _hash(data)


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(memoryview(data)[:-64]).hexdigest().encode()
