"""How near an arm is to a singularity, and what it does there, as the robot file says."""

import dataclasses
import math

from mher_ros.options import Settings, SettingsError
import numpy as np
from numpy.typing import NDArray

ACTIONS = ('slow', 'stop', 'pass')
LENGTH = 0.3
"""Length that makes angular velocities comparable with linear ones [m]."""
TURNING = 6  # joints from which on the rotation of the tool counts, too


@dataclasses.dataclass(frozen=True)
class SingularityOptions:
    """What a motion of the tool does near a singularity; for outputs that command joints."""

    action: str = 'slow'
    """One of ``ACTIONS``."""
    slow_at: float = 30.0
    """Condition number from which on a motion towards a singularity is slowed down."""
    stop_at: float = 60.0
    """Condition number at which it stops, or has the least speed."""


def read_singularity(settings: Settings) -> SingularityOptions:
    """Read the section ``singularity``."""
    usual = SingularityOptions()
    options = SingularityOptions(
        action=settings.choice('action', ACTIONS, usual.action),
        slow_at=settings.number('slow_at', usual.slow_at, low=1.0, high=1e6),
        stop_at=settings.number('stop_at', usual.stop_at, low=1.0, high=1e6),
    )
    settings.finish()
    if not options.slow_at < options.stop_at:
        raise SettingsError(
            'singularity.slow_at is expected to be smaller than singularity.stop_at, got '
            f'{options.slow_at:g} and {options.stop_at:g}'
        )
    return options


def condition_number(jacobian: NDArray[np.float64]) -> float:
    """
    Return the condition number of a tool's Jacobian (6, k) by k joints; infinite if singular.

    With fewer than six joints only the position of the tool counts.
    """
    count = jacobian.shape[1]
    weighted = jacobian[:3]
    if count >= TURNING:
        weighted = np.concatenate((weighted, LENGTH * jacobian[3:]))
    values = np.linalg.svd(weighted, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 1e-9 else math.inf
