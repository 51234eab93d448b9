"""Where and with what runs are done."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path
import platform

import mher_ros
from mher_ros.experiments.jobs import code_digest, library_versions
from mher_ros.experiments.local import cores

__all__ = ['machine_facts']

BESIDE = ('stable-baselines3', 'rclpy')
"""What figures depend on, and runs do not; not all of it need be there."""
CPU_INFO = Path('/proc/cpuinfo')


def machine_facts() -> dict[str, str]:
    """Return processor, cores, system and versions by what people call them."""
    beside = _versions_beside()
    middleware = os.environ.get('RMW_IMPLEMENTATION') or "ROS's default"
    return {
        'processor': _processor(),
        'cores': f'{cores()} of {os.cpu_count()}',
        'system': f'{platform.system()} {platform.machine()}',
        'versions': f'mher_ros {mher_ros.__version__}, Python {platform.python_version()}, '
        + ', '.join((library_versions(), *(f'{name} {v}' for name, v in beside.items()))),
        **({'middleware': middleware} if 'rclpy' in beside else {}),
        'code': code_digest(),
    }


def _processor() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text().splitlines():
            key, _, value = line.partition(':')
            if key.strip() == 'model name':
                return value.strip()
    return platform.processor() or 'unknown'


def _versions_beside() -> dict[str, str]:
    found = {}
    for name in BESIDE:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found
