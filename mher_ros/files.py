"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
from pathlib import Path
import tempfile

__all__ = ['write_atomically']


def write_atomically(path: Path, content: bytes) -> None:
    """
    Put ``content`` at ``path``, all of it or nothing.

    A full disk or a missing permission raises OSError and leaves what was there before.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(handle, 'wb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
