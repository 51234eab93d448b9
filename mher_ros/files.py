"""File names of a run; writes files atomically, and reads files of limited size."""

import errno
import os
from pathlib import Path
import stat
import tempfile

# In the folder of a run. An algorithm without an actor writes no policy.
CONFIG, CHECKPOINT, POLICY = 'config.json', 'checkpoint', 'policy.onnx'
PROGRESS = 'progress.csv'  # one row per evaluation
EPISODES, TENSORBOARD = 'episodes.npz', 'tensorboard'


def read_at_most(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes; OSError for all others."""
    # Without blocking: a named pipe may never have a writer.
    with open(path, 'rb', opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, 'a regular file is expected', str(path))
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f'at most {most} bytes are expected, it has more', str(path))
    return content


def write_atomically(path: Path, content: bytes) -> None:
    """Write ``content`` completely, or raise OSError and leave the previous file."""
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
    # So that the renaming survives a power failure.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove temporary files of a run whose writers were killed; none may be running."""
    for name in (CHECKPOINT, CONFIG, EPISODES, POLICY, PROGRESS):
        for leftover in folder.glob(f'.{name}.*'):
            leftover.unlink(missing_ok=True)


def share_folder() -> Path:
    """Return the folder with ``config/`` that belongs to this code."""
    # This is ``share/mher_ros`` of its installation prefix (colcon or pip), or the checkout. The
    # search starts at this file, so it needs no environment variable, and finds no other one.
    for folder in Path(__file__).resolve().parents:
        for candidate in (folder / 'share' / 'mher_ros', folder):
            if (candidate / 'package.xml').is_file():
                return candidate
    raise FileNotFoundError(f'no share folder of mher_ros above {__file__}')
