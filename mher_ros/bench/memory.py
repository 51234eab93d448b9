"""How much memory processes hold."""

from __future__ import annotations

from pathlib import Path

__all__ = ['resident_memory']


def resident_memory(process: int | str) -> float:
    """Return the memory that a process, ``self`` for this one, holds [MB]."""
    for line in Path(f'/proc/{process}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1]) / 1024.0
    raise RuntimeError(f'/proc/{process}/status does not tell VmRSS')
