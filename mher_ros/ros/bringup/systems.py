"""The systems by name: what ``mher up`` and the launch files start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mher_ros.options import OptionError, override
from mher_ros.ros.bringup.deploy import Deploy, DeploySim
from mher_ros.ros.bringup.system import System
from mher_ros.ros.bringup.train_sim import TrainSim

__all__ = ['make_system', 'SYSTEMS']

SYSTEMS: dict[str, type[System]] = {
    'train_sim': TrainSim,
    'deploy_sim': DeploySim,
    'deploy': Deploy,
}


def make_system(name: str, values: Mapping[str, Any]) -> System:
    """Return the system called ``name``; ``values`` (or their texts) replace its defaults."""
    if name not in SYSTEMS:
        raise OptionError(f'unknown system {name!r}; there are {", ".join(SYSTEMS)}')
    return override(SYSTEMS[name](), dict(values))
