"""The time of an arm: the wall clock, or the clock of a simulation; and times of messages."""

from collections.abc import Callable
import threading
import time

from builtin_interfaces.msg import Time
from mher_ros.ros.common.polled_topic import LATEST_ONLY, PolledTopic
from rclpy.clock import Clock, ROSClock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage

STEADY = Clock(clock_type=ClockType.STEADY_TIME)
"""The wall clock, for timers that must also run while a simulated clock is stopped."""
AHEAD = 0.05  # by which a change of a simulated clock may exceed the wall time since the last [s]
STANDSTILL = 0.5  # wall time without a change after which a simulated clock counts as stopped [s]
SECOND = 1e9  # in nanoseconds
SET = 1_000_000  # change of the system clock from which on it was set [ns]
UNSURE = 5_000_000_000  # time for which messages from before that may still be handled [ns]


class ArmTime:
    """Monotonic time from a wall clock and, if in use, a simulated clock."""

    # If the simulated clock is set back or forward, time continues nearly without a jump: a moving
    # arm does not come to rest by that. While that clock is stopped, or has not started, time
    # follows the wall clock after ``STANDSTILL``: braking must come to an end.
    def __init__(self, wall: float) -> None:
        """Start at this time of the wall clock [s]."""
        self.standing_still = False  # whether the simulated clock is in use and stopped
        self._now = self._wall = self._changed = wall
        self._simulated: float | None = None

    def at(self, wall: float, simulated: float | None) -> float:
        """Return the time [s] for these clock readings [s]; ``simulated`` None: not in use."""
        passed = max(0.0, wall - self._wall)
        before, self._wall, self._simulated = self._simulated, wall, simulated
        most = wall - self._changed + AHEAD
        if simulated is None or simulated != before:
            self._changed = wall
        stood_still = self.standing_still
        self.standing_still = wall - self._changed > STANDSTILL
        if self.standing_still and not stood_still:
            passed = wall - self._changed  # the arm may have been at rest for that time
        elif simulated is not None and not self.standing_still:
            # ROS returns 0 until the first message on /clock.
            passed = min(max(0.0, simulated - before), most) if before else 0.0
        self._now += passed
        return self._now


class ArmClock:
    """The time of an arm, for commands and timeouts; any thread may call it."""

    # It follows /clock while the parameter ``use_sim_time`` is set, so that limits hold in
    # simulated time, too, if the simulation is slow. It reads the topic itself: the node's
    # executor does not do so while a callback brakes the arm.
    def __init__(self, node: Node) -> None:
        self._node, clock = node, node.get_clock()
        assert isinstance(clock, ROSClock)
        self._clock = clock
        self._topic = PolledTopic(node, ClockMessage, '/clock', LATEST_ONLY)
        self._simulated = Time()
        self._time = ArmTime(_wall_clock())
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return the time [s], which never decreases."""
        with self._lock:
            simulated = None
            if self._clock.ros_time_is_active:
                self._read()
                simulated = self._simulated.sec + self._simulated.nanosec / SECOND
            return self._time.at(_wall_clock(), simulated)

    def stamp(self) -> Time:
        """Return the time for the header of a message."""
        return self._simulated if self.is_simulated else self._clock.now().to_msg()

    def close(self) -> None:
        """Close the subscription."""
        self._node.destroy_subscription(self._topic.subscription)

    def _read(self) -> None:
        raw = self._topic.take(0.0)
        message = None if raw is None else self._topic.read(raw)
        if message is not None and message.clock.sec >= 0:
            self._simulated = message.clock

    @property
    def is_simulated(self) -> bool:
        """Whether the clock is a simulation's, which advances in steps."""
        return bool(self._clock.ros_time_is_active)

    @property
    def standing_still(self) -> bool:
        """Whether a simulated clock is in use and was stopped at the last call of ``now``."""
        return self._time.standing_still


class SteadyTimes:
    """Converts system times to times of ``time.monotonic_ns``, also after the clock was set."""

    # A message that was sent before the system clock was set back cannot be told from a later one.
    # So for a while the earlier of the two conversions counts.
    def __init__(
        self,
        system: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._system, self._steady = system, steady
        self._offsets = [self._offset()]
        self._set_at = steady()

    def look(self) -> None:
        """Notice whether the system clock was set; to be called at least once per second."""
        offset, now = self._offset(), self._steady()
        if abs(offset - self._offsets[-1]) > SET:
            self._set_at = now
            self._offsets.append(offset)
        elif now - self._set_at > UNSURE:
            self._offsets = [offset]

    def of(self, system_time: int) -> int:
        """Return the earliest steady time [ns] that a past system time [ns] can be."""
        self.look()
        return min(system_time - max(self._offsets), self._steady())

    def _offset(self) -> int:
        # The smallest: this thread may have to wait between the two readings.
        return min(-self._steady() + self._system() for _ in range(3))


def _wall_clock() -> float:
    """Return the time [s] of a clock that also runs while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
