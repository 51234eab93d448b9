"""How often commands are really sent."""

import math

from mher_ros.control.command_path import GRACE

WINDOW = 2.0  # time of a motion over which the rate of its commands is measured [s]
SLOW = 0.95  # share of the possible rate of commands below which there is a warning


class CommandRate:
    """Rate at which commands are sent during motions, without pauses between them."""

    def __init__(self, wanted: float, pause: float) -> None:
        """``wanted``: rate of commands [Hz]; ``pause``: time that separates two motions [s]."""
        self._wanted, self._pause = wanted, pause
        self._last = -math.inf
        self._seconds, self._sent, self._states = 0.0, 0, 0
        self.states = 0
        """Joint states since the last command; the reader of the states counts them here."""
        self.value = math.nan
        """Rate in the last window [Hz]; not a number before."""

    def note(self, now: float) -> str | None:
        """Record a command sent at ``now`` [s]; return a warning if commands are too slow."""
        gap, self._last = now - self._last, now
        states, self.states = self.states, 0
        if gap > self._pause:
            return None
        self._seconds += gap
        self._sent += 1
        self._states += states
        if self._seconds < WINDOW:
            return None
        sent, seen = self._sent / self._seconds, self._states / self._seconds
        self._seconds, self._sent, self._states = 0.0, 0, 0
        self.value = sent
        # Commands wait for states, unless these are much rarer.
        waits = seen * (1.0 + GRACE) > self._wanted
        if sent >= SLOW * (min(seen, self._wanted) if waits else self._wanted):
            return None
        return (
            f'commands are sent at {sent:.0f} Hz instead of {self._wanted:g} Hz, with '
            f'{seen:.0f} joint states per second: the arm is slower than its limits allow; '
            'lower command_rate or free a core'
        )
