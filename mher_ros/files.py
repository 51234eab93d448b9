"""Writing files so that a reader never sees half of one, and reading no more than is expected."""

from __future__ import annotations

import errno
import os
from pathlib import Path
import stat
import tempfile

__all__ = ['read_at_most', 'remove_leftovers', 'write_atomically']


def read_at_most(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes; OSError for all others."""
    # Without waiting: a named pipe may never have a writer.
    with open(path, 'rb', opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, 'a regular file is expected', str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f'at most {most} bytes are expected, it has more', str(path))
    return content


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
        Path(name).unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def remove_leftovers(path: Path) -> None:
    """Remove what writers of ``path`` left behind when they were killed; none may be at work."""
    for leftover in path.parent.glob(f'.{path.name}.*'):
        leftover.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Make sure that a power failure does not undo the renaming."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
