"""Code, libraries and machine of a run."""

import functools
import hashlib
import importlib.metadata
import os
from pathlib import Path
import platform
import re

import mher_ros

LIBRARIES = ('numpy', 'scipy', 'torch', 'mujoco', 'gymnasium', 'gymnasium-robotics', 'metaworld')
"""Libraries that determine the bits of a run; the last two hold the models of the arms."""
OPTIONAL = ('stable-baselines3', 'rclpy')
"""Libraries on which benchmarks depend, but no run; they need not be installed."""
CPU_INFO = Path('/proc/cpuinfo')


def cores() -> int:
    return len(os.sched_getaffinity(0))


def machine_facts() -> dict[str, str]:
    """Return processor, cores, system and versions, by their names for people."""
    optional = {}
    for name in OPTIONAL:
        try:
            optional[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    middleware = os.environ.get('RMW_IMPLEMENTATION') or "ROS's default"
    return {
        'processor': _processor(),
        'cores': f'{cores()} of {os.cpu_count()}',
        'system': f'{platform.system()} {platform.machine()}',
        'versions': f'mher_ros {mher_ros.__version__}, Python {platform.python_version()}, '
        + ', '.join((library_versions(), *(f'{name} {v}' for name, v in optional.items()))),
        **({'middleware': middleware} if 'rclpy' in optional else {}),
        'code': code_digest(),
    }


def library_versions() -> str:
    return ', '.join(f'{name} {importlib.metadata.version(name)}' for name in LIBRARIES)


def code_digest_now() -> str:
    """Return a hash of the source files and library versions that a run depends on."""
    root = Path(mher_ros.__file__).parent
    sources = [root / name for name in ('interface.py', 'options.py', 'experiments/recorders.py')]
    for folder in ('control', 'learning', 'robots', 'simulation', 'tasks'):
        sources += sorted((root / folder).rglob('*.py'))
    digest = hashlib.sha256(library_versions().encode())
    for path in sources:
        digest.update(f'{path.relative_to(root).as_posix()}\0'.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


code_digest = functools.cache(code_digest_now)  # returns that of the first call


def _processor() -> str:
    text = CPU_INFO.read_text() if CPU_INFO.exists() else ''
    found = re.search(r'^model name\s*:\s*(.*)$', text, re.MULTILINE)
    return found[1] if found else platform.processor() or 'unknown'
