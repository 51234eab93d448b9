"""
Nodes that are meant to meet those of this machine alone, out of reach of all others.

With ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST a node looks for others on this machine only, but Fast
DDS listens on every network: who sends it an announcement by unicast is answered, and may then
publish commands and goals. A profile has it listen on loopback alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mher_ros.share import share_folder

__all__ = ['loopback_profile']

PROFILE = 'FASTRTPS_DEFAULT_PROFILES_FILE'
OWN_CHOICES = (
    PROFILE,
    'FASTDDS_DEFAULT_PROFILES_FILE',
    'FASTDDS_BUILTIN_TRANSPORTS',
    'ROS_STATIC_PEERS',
)
"""What a person sets who knows which networks Fast DDS is to use."""
OWN_FILE = 'DEFAULT_FASTRTPS_PROFILES.xml'
"""Fast DDS reads it where a process is started."""


def loopback_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what to add to the environment of a node that has it stay on this machine, if so."""
    is_local = (
        environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE') == 'LOCALHOST'
        or environment.get('ROS_LOCALHOST_ONLY') == '1'
    )
    is_chosen = any(environment.get(name) for name in OWN_CHOICES) or Path(OWN_FILE).exists()
    if not is_local or is_chosen:
        return {}
    return {PROFILE: str(share_folder() / 'config' / 'dds' / 'loopback.xml')}
