"""Parameters of policy_node."""

from __future__ import annotations

import dataclasses

from mher_ros.control.robot import OUTPUTS
from mher_ros.control.safety import SafetyOptions
from mher_ros.options import option

__all__ = ['PolicyOptions']


@dataclasses.dataclass(frozen=True)
class PolicyOptions:
    """Parameters of policy_node."""

    policy: str = option(
        '', "policy file, or a run's folder; empty: the newest below runs/ in this folder"
    )
    robot: str = option(
        'fetch', 'arm: one that comes with mher_ros, or the path of a YAML file about it'
    )
    output: str = option(
        'robot',
        "what the arm is told; none: nothing, only markers; robot: as the robot's file says",
        choices=('robot', *OUTPUTS),
    )
    autostart: bool = option(True, 'configure and activate without being told to')
    outside: str = option(
        'reject',
        'goals outside the workspace: reject, or project to the nearest point inside',
        choices=('reject', 'project'),
    )
    speed: float = option(
        0.0, "fastest motion of the tool [m/s]; 0: as the robot's file says", low=0.0, high=2.0
    )
    acceleration: float = option(
        0.0,
        "fastest change of its velocity [m/s^2]; 0: as the robot's file says",
        low=0.0,
        high=20.0,
    )
    command_rate: float = option(
        0.0, "most commands in a second [Hz]; 0: as the robot's file says", low=0.0, high=500.0
    )
    model_timeout: float = option(
        30.0,
        'time to wait for the model of an arm that comes on a topic [s]',
        low=0.1,
        high=3600.0,
    )
    safety: SafetyOptions = SafetyOptions()
