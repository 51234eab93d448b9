"""What an arm does near a singularity, as the robot file says."""

import dataclasses

from mher_ros.options import Settings, SettingsError

ACTIONS = ('slow', 'stop', 'pass')


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
