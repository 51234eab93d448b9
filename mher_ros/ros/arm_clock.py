"""The time by which an arm moves: the wall clock's, or that of a simulation."""

from __future__ import annotations

import threading
import time

from rclpy.clock import ROSClock
from rclpy.node import Node

__all__ = ['ArmClock', 'ArmTime']

STANDS = 0.5
"""Wall time after which a simulated clock that has not changed is taken to stand still [s]."""
SECOND = 1e9
"""In nanoseconds."""


class ArmTime:
    """
    Time that never goes back, out of a wall clock's and maybe a simulation's.

    A simulated clock that is set back goes on from there. While it stands still, or before it has
    started, time goes on by the wall clock after ``STANDS``: a stop must come to its end.
    """

    def __init__(self, wall: float) -> None:
        """Begin at this time of the wall clock [s]."""
        self.standing_still = False
        """Whether the simulated clock is in use and stands still."""
        self._now = self._wall = self._changed = wall
        self._simulated: float | None = None

    def at(self, wall: float, simulated: float | None) -> float:
        """Return the time [s] where clocks show these [s]; ``simulated`` None: not in use."""
        passed = max(0.0, wall - self._wall)
        before, self._wall, self._simulated = self._simulated, wall, simulated
        if simulated is None or simulated != before:
            self._changed = wall
        self.standing_still = wall - self._changed > STANDS
        if simulated is not None and not self.standing_still:
            # 0 is no time but what ROS shows until the first message of /clock.
            passed = max(0.0, simulated - before) if before else 0.0
        self._now += passed
        return self._now


class ArmClock:
    """
    The time for everything that an arm does and is waited for; any thread may ask for it.

    It is that of the node's clock while the parameter ``use_sim_time`` is set, so that an arm in a
    slow simulation is no faster, by that simulation's time, than a real one.
    """

    def __init__(self, node: Node) -> None:
        clock = node.get_clock()
        assert isinstance(clock, ROSClock)
        self._clock = clock
        self._time = ArmTime(time.monotonic())
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time [s]; it never goes back."""
        with self._lock:
            simulated = None
            if self._clock.ros_time_is_active:
                simulated = self._clock.now().nanoseconds / SECOND
            return self._time.at(time.monotonic(), simulated)

    @property
    def standing_still(self) -> bool:
        """Whether a simulated clock is in use and stood still when ``now`` was called last."""
        return self._time.standing_still
