"""The ranges that the plants of a simulation are drawn from, as the robot file says."""

from __future__ import annotations

import dataclasses
from typing import Any

from mher_ros.options import Settings

Range = tuple[float, float]

MOST_RANDOM = 2.0  # largest factor of the ranges


def _range(low: float, high: float, *, nominal: float = 0.0, limits: Range) -> Any:
    """Declare a range; ``nominal``: without randomisation, ``limits``: what a file may say."""
    metadata = {'nominal': nominal, 'limits': limits}
    return dataclasses.field(default=(low, high), metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Randomisation:
    """
    Smallest and largest values, from which the plant of an episode is drawn uniformly.

    The gains and the friction are those of Isaac Lab's task to deploy UR arms
    (``manipulation/deploy/reach``). The others are assumed, for arms behind ros2_control.
    """

    # Those of stiffness, damping and friction are drawn for each joint.
    command_delay: Range = _range(0.0, 0.02, limits=(0.0, 0.1))
    """Time until a drive gets a command [s], in whole periods of joint states (0.01 s)."""
    state_delay: Range = _range(0.0, 0.02, limits=(0.0, 0.1))
    """Age of a joint state when it is published [s], in whole periods (0.01 s)."""
    stiffness: Range = _range(0.9, 1.1, nominal=1.0, limits=(0.6, 1.5))
    """Force of a drive per position error, over the nominal one."""
    damping: Range = _range(0.75, 1.5, nominal=1.0, limits=(0.6, 3.0))
    """Force of a drive per velocity error, over the nominal one."""
    friction: Range = _range(0.0, 0.1, limits=(0.0, 20.0))
    """Dry friction of a joint [N m or N]."""
    payload: Range = _range(0.0, 0.5, limits=(0.0, 20.0))
    """Mass at the tool that the drives do not know [kg]."""
    link_error: Range = _range(0.0, 0.001, limits=(0.0, 0.05))
    """Largest error of the position of a joint in its link, and of the tool, by axis [m]."""
    position_noise: Range = _range(0.0, 0.0005, limits=(0.0, 0.01))
    """Largest error of a measured position [rad or m]; it is uniform."""
    velocity_noise: Range = _range(0.0, 0.01, limits=(0.0, 1.0))
    """Largest error of a measured velocity [rad/s or m/s]; it is uniform."""
    quantisation: Range = _range(0.0, 0.0015, limits=(0.0, 0.02))
    """Step of the encoders [rad or m]; 4096 steps per turn are 0.0015 rad."""
    lost_commands: Range = _range(0.0, 0.02, limits=(0.0, 0.25))
    """Share of the commands that a drive does not get; the one before is executed again."""
    lost_states: Range = _range(0.0, 0.02, limits=(0.0, 0.25))
    """Share of the joint states that are not published."""

    def scaled(self, factor: float) -> Randomisation:
        """Return ranges whose distances from the nominal values are multiplied."""
        changed = {}
        for field in dataclasses.fields(self):
            nominal = field.metadata['nominal']
            changed[field.name] = tuple(
                nominal + factor * (end - nominal) for end in getattr(self, field.name)
            )
        return Randomisation(**changed)

    @property
    def delay(self) -> float:
        """Largest time from a command to the joint state that shows its effect [s]."""
        return self.command_delay[1] + self.state_delay[1]


def read_randomisation(settings: Settings) -> Randomisation:
    """Read the section ``randomise``."""
    ranges = {
        field.name: settings.range(field.name, field.default, *field.metadata['limits'])
        for field in dataclasses.fields(Randomisation)
    }
    settings.finish()
    return Randomisation(**ranges)
