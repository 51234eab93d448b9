"""Where the files that are no code lie: launch files, configuration, RViz layouts."""

from __future__ import annotations

from pathlib import Path

__all__ = ['share_folder']


def share_folder() -> Path:
    """
    Return the folder with ``config/`` that belongs to this very code.

    That is ``share/mher_ros`` of the prefix it is installed in (by colcon or by pip), or the
    checkout. Found from this file upwards, so no environment variable is needed, and no other
    installation's files are taken.
    """
    for folder in Path(__file__).resolve().parents:
        for candidate in (folder / 'share' / 'mher_ros', folder):
            if (candidate / 'package.xml').is_file():
                return candidate
    raise FileNotFoundError(f'no share folder of mher_ros above {__file__}')
