"""One plant, drawn from the ranges of a randomisation."""

import dataclasses

from mher_ros.interface import Vector
from mher_ros.robots.randomisation import Randomisation, Range
import numpy as np


@dataclasses.dataclass(frozen=True)
class PlantDraw:
    """What is different from the nominal plant: as ``Randomisation``, with one value of each."""

    command_delay: int
    state_delay: int
    """Delays in periods of joint states."""
    stiffness: Vector
    damping: Vector
    friction: Vector
    """One entry for each commanded joint (k,)."""
    payload: float
    link_errors: Vector
    """Displacements of bodies in their parents' frames (b, 3) [m]."""
    position_noise: float
    velocity_noise: float
    quantisation: float
    lost_commands: float
    lost_states: float

    @property
    def text(self) -> str:
        """The values, for people."""
        with np.printoptions(precision=3, suppress=True):
            parts = dataclasses.asdict(self)
            parts['link_errors'] = f'up to {np.abs(self.link_errors).max(initial=0.0):.2g} m'
            return ', '.join(
                f'{name} {value:.3g}' if isinstance(value, float) else f'{name} {value}'
                for name, value in parts.items()
            )


def draw_plant(
    ranges: Randomisation, rng: np.random.Generator, joints: int, bodies: int, period: float
) -> PlantDraw:
    """
    Draw a plant with ``joints`` commanded joints (k) and ``bodies`` that may be elsewhere (b).

    ``period``: time between two joint states [s].
    """
    # A new quantity is drawn after these, so that the same seed draws the same ones as before.
    return PlantDraw(
        command_delay=_periods(ranges.command_delay, rng, period),
        state_delay=_periods(ranges.state_delay, rng, period),
        stiffness=rng.uniform(*ranges.stiffness, joints),
        damping=rng.uniform(*ranges.damping, joints),
        friction=rng.uniform(*ranges.friction, joints),
        payload=rng.uniform(*ranges.payload),
        link_errors=rng.uniform(*ranges.link_error) * rng.uniform(-1.0, 1.0, (bodies, 3)),
        position_noise=rng.uniform(*ranges.position_noise),
        velocity_noise=rng.uniform(*ranges.velocity_noise),
        quantisation=rng.uniform(*ranges.quantisation),
        lost_commands=rng.uniform(*ranges.lost_commands),
        lost_states=rng.uniform(*ranges.lost_states),
    )


def _periods(delays: Range, rng: np.random.Generator, period: float) -> int:
    """Return a number of periods; each that is in the range is as likely as the others."""
    low, high = (round(delay / period) for delay in delays)
    return int(rng.integers(low, high, endpoint=True))
