"""Where and with what runs are done."""

from __future__ import annotations

import os
import platform

import mher_ros
from mher_ros.experiments.jobs import code_digest, library_versions
from mher_ros.experiments.local import cores

__all__ = ['machine_facts']


def machine_facts() -> dict[str, str]:
    """Return cores, system and versions by what people call them."""
    return {
        'cores': f'{cores()} of {os.cpu_count()}',
        'system': f'{platform.system()} {platform.machine()}',
        'versions': f'mher_ros {mher_ros.__version__}, Python {platform.python_version()}, '
        f'{library_versions()}',
        'code': code_digest(),
    }
