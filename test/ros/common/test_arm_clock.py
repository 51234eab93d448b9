"""An arm's time is the wall clock's, or the simulation's, and never goes back."""

import time
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st
from mher_ros.ros.common.arm_clock import ArmClock, ArmTime, STANDSTILL, SteadyTimes, UNSURE
import pytest
from rclpy.clock import ROSClock

PAUSE = 0.1
"""Time without a command after which a moving arm counts as stopped by its driver [s]."""


def test_without_a_simulation_it_is_the_wall_clocks():
    time = ArmTime(100.0)
    assert time.at(100.5, None) == pytest.approx(100.5)
    assert time.at(107.0, None) == pytest.approx(107.0)
    assert not time.standing_still


def test_with_a_simulation_it_passes_as_simulated_time_does():
    time = ArmTime(100.0)
    start = time.at(100.0, 50.0)
    for tick in range(1, 101):
        now = time.at(100.0 + 0.01 * tick, 50.0 + 0.002 * tick)
    assert now - start == pytest.approx(0.2)
    assert not time.standing_still


def test_the_first_message_of_the_clock_is_no_leap():
    time = ArmTime(100.0)
    start = time.at(100.1, 0.0)
    assert time.at(100.2, 1.7e9) == start
    assert time.at(100.3, 1.7e9 + 0.05) == pytest.approx(start + 0.05)


def test_a_clock_that_is_set_back_goes_on_from_there():
    time = ArmTime(0.0)
    start = time.at(0.0, 50.0)
    assert time.at(0.1, 3.0) == start
    assert time.at(0.2, 3.1) == pytest.approx(start + 0.1)


def test_a_clock_that_is_set_forward_is_no_pause():
    time = ArmTime(0.0)
    time.at(0.0, 50.0)
    start = time.at(0.01, 50.01)
    jumped = time.at(0.02, 80.0)
    assert jumped - start < PAUSE
    assert time.at(0.03, 80.01) == pytest.approx(jumped + 0.01)


def test_a_fast_simulation_is_followed():
    time = ArmTime(0.0)
    start = time.at(0.0, 50.0)
    for tick in range(1, 101):
        now = time.at(0.01 * tick, 50.0 + 0.05 * tick)
    assert now - start == pytest.approx(5.0)


def test_a_clock_that_stands_still_is_noticed_and_the_wall_clock_takes_over():
    time = ArmTime(0.0)
    time.at(0.0, 50.0)
    start = time.at(0.1, 50.1)
    assert time.at(0.1 + 0.9 * STANDSTILL, 50.1) == start
    assert not time.standing_still
    late = time.at(0.11 + STANDSTILL, 50.1)
    assert time.standing_still
    assert time.at(0.61 + STANDSTILL, 50.1) == pytest.approx(late + 0.5)
    assert time.at(0.7 + STANDSTILL, 50.2) == pytest.approx(late + 0.6)
    assert not time.standing_still


@pytest.mark.parametrize('simulated', [0.0, 50.0])
def test_the_time_until_a_stopped_clock_is_noticed_counts_too(simulated):
    time = ArmTime(0.0)
    start = time.at(1.0, None)
    for tick in range(1, 200):
        now = time.at(1.0 + 0.01 * tick, simulated)
    assert time.standing_still
    assert now - start == pytest.approx(1.99, abs=0.02)


def test_the_time_for_which_the_machine_was_suspended_counts(monkeypatch):
    monkeypatch.setattr('mher_ros.ros.common.arm_clock.PolledTopic', lambda *args: None)
    clock = ArmClock(SimpleNamespace(get_clock=ROSClock))
    before, read = clock.now(), time.clock_gettime
    slept = {time.CLOCK_BOOTTIME: 3600.0}
    monkeypatch.setattr(time, 'clock_gettime', lambda one: read(one) + slept.get(one, 0.0))
    assert clock.now() - before >= 3600.0


def test_a_clock_that_never_starts_stands_still():
    time = ArmTime(0.0)
    time.at(0.0, 0.0)
    time.at(1.1 * STANDSTILL, 0.0)
    assert time.standing_still


def test_the_clock_may_be_changed_at_run_time():
    time = ArmTime(0.0)
    start = time.at(1.0, None)
    assert time.at(1.1, 7.0) == start
    assert time.at(1.2, 7.02) == pytest.approx(start + 0.02)
    assert time.at(1.3, None) == pytest.approx(start + 0.12)
    assert not time.standing_still


SIMULATED = st.one_of(st.none(), st.floats(-1e9, 1e10))


@given(st.lists(st.tuples(st.floats(0.0, 3.0), SIMULATED), max_size=50))
def test_it_never_goes_back(readings):
    time, wall, last = ArmTime(10.0), 10.0, 10.0
    for passed, simulated in readings:
        wall += passed
        now = time.at(wall, simulated)
        assert now >= last
        assert not (simulated is None and time.standing_still)
        last = now


SECOND = 1_000_000_000


class Clocks:
    """A system clock that somebody sets, and a steady one [ns]."""

    def __init__(self):
        self.steady, self._ahead = 100 * SECOND, 1_700_000_000 * SECOND
        self.times = SteadyTimes(lambda: self.system, lambda: self.steady)

    @property
    def system(self):
        return self.steady + self._ahead

    def set(self, seconds):
        self._ahead += round(seconds * SECOND)

    def wait(self, seconds):
        """Let time pass, during which the clock is looked at."""
        for _ in range(10):
            self.steady += round(seconds * SECOND / 10)
            self.times.look()


@pytest.mark.parametrize('by', [-3600.0, -0.5, 0.0, 0.5, 3600.0])
def test_system_times_are_those_of_the_steady_clock_some_time_after_it_was_set(by):
    clocks = Clocks()
    clocks.wait(1.0)
    clocks.set(by)
    clocks.wait(1.0 + UNSURE / SECOND)
    sent, was = clocks.system, clocks.steady
    clocks.steady += SECOND
    assert clocks.times.of(sent) == was


@pytest.mark.parametrize('by', [-3600.0, -0.5, 0.5, 3600.0])
@pytest.mark.parametrize('suspended', [0.0, 60.0])
def test_what_was_sent_before_the_system_clock_was_set_never_counts_as_sent_later(by, suspended):
    clocks = Clocks()
    sent, was = clocks.system, clocks.steady
    clocks.steady += round((0.01 + suspended) * SECOND)
    clocks.set(by)
    for _ in range(3):  # other messages are looked at before
        assert clocks.times.of(sent) <= was
        clocks.steady += SECOND


def test_a_time_that_is_not_over_is_now():
    clocks = Clocks()  # that of a sender whose clock is ahead
    assert clocks.times.of(clocks.system + SECOND) == clocks.steady


def test_a_thread_that_is_interrupted_between_both_readings_takes_nothing_for_later():
    clocks = Clocks()
    readings = iter(range(1000))

    def system():
        if next(readings) == 1:
            clocks.steady += SECOND
        return clocks.system

    times = SteadyTimes(system, lambda: clocks.steady)
    sent, was = clocks.system, clocks.steady
    clocks.steady += SECOND
    assert times.of(sent) == was
