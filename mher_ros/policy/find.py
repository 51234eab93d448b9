"""Which policy file a person means."""

from __future__ import annotations

from pathlib import Path

from mher_ros.policy.contract import PolicyFileError

__all__ = ['find_policy']

NAME = 'policy.onnx'


def find_policy(given: str, runs: str = 'runs') -> Path:
    """
    Return the policy file at ``given``: a file, or the folder of a run.

    Empty, it is the newest below the folder ``runs``.
    """
    if given:
        path = Path(given).expanduser()
        return path / NAME if path.is_dir() else path
    written = [(path.stat().st_mtime, path) for path in Path(runs).glob(f'**/{NAME}')]
    if not written:
        raise PolicyFileError(
            f'no policy was named, and there is none below {Path(runs).resolve()}: train one, or '
            'name its file or the folder of its run'
        )
    return max(written)[1]
