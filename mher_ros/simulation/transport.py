"""How the values of a simulated arm reach others: late, with errors, or not at all."""

from collections import deque
from typing import Generic, TypeVar

from mher_ros.interface import Vector
import numpy as np
from numpy.random import Generator

Value = TypeVar('Value')
JointState = tuple[Vector, Vector]  # positions [rad or m] and velocities (n,)


class Channel(Generic[Value]):
    """Passes on one value per period, some periods later; lost values are never passed on."""

    def __init__(self, first: Value, delay: int = 0, loss: float = 0.0) -> None:
        """Pass on ``first`` for ``delay`` periods; lose the share ``loss`` of all values."""
        self._under_way: deque[Value] = deque([first] * delay)
        self._latest, self._loss = first, loss
        self.is_new = True
        """Whether a value has arrived in this period."""

    def send(self, value: Value, rng: Generator) -> Value:
        """Send the value of this period, and return the latest one that has arrived."""
        self._under_way.append(value)
        arriving = self._under_way.popleft()
        self.is_new = not (self._loss and rng.random() < self._loss)
        if self.is_new:
            self._latest = arriving
        return self._latest


class JointSensors:
    """Measured joint states, as they are published: with noise, steps, delay and losses."""

    def __init__(
        self, indices: list[int], position_noise: float, velocity_noise: float, step: float
    ) -> None:
        """
        Measure the joints ``indices`` of all joints (n); the others are known exactly.

        ``position_noise`` [rad or m] and ``velocity_noise``: largest errors; ``step``: of the
        encoders [rad or m], 0: none.
        """
        self._indices, self._step = indices, step
        self._noise = position_noise, velocity_noise

    def measure(self, state: JointState, rng: Generator) -> JointState:
        """Return what the sensors read of a joint state (n,)."""
        positions, velocities = (values.copy() for values in state)
        indices, (places, speeds) = self._indices, self._noise
        positions[indices] += rng.uniform(-places, places, len(indices))
        velocities[indices] += rng.uniform(-speeds, speeds, len(indices))
        if self._step:
            positions[indices] = self._step * np.round(positions[indices] / self._step)
        return positions, velocities
