"""The rate at which commands leave is measured, and reported where it is too low."""

import math

from mher_ros.control.command_rate import CommandRate
import pytest


def rate_of(commands, states, wanted=500.0, seconds=10.0):
    """Return the rate that was measured with so many commands and states a second; warnings."""
    rate, warnings = CommandRate(wanted, 0.1), set()
    for sent in range(round(seconds * commands)):
        rate.states += round((sent + 1) * states / commands) - round(sent * states / commands)
        warnings.add(rate.note(100.0 + sent / commands))
    return rate.value, warnings - {None}


@pytest.mark.parametrize(
    ('commands', 'states'), [(500, 500), (480, 500), (400, 400), (500, 1000), (500, 100)]
)
def test_commands_at_the_rate_that_states_allow_are_no_reason_for_a_warning(commands, states):
    value, warnings = rate_of(commands, states)
    assert value == pytest.approx(commands, rel=0.01)
    assert not warnings


@pytest.mark.parametrize(('commands', 'states'), [(350, 500), (350, 400), (400, 1000), (400, 100)])
def test_commands_that_are_rarer_than_asked_are_reported_with_their_rate(commands, states):
    value, warnings = rate_of(commands, states)
    assert value == pytest.approx(commands, rel=0.01)
    assert len(warnings) >= 1
    assert all(f' {commands} Hz instead of 500 Hz' in warning for warning in warnings)


def test_pauses_between_motions_do_not_count_for_the_rate():
    rate, now = CommandRate(100.0, 0.1), 0.0
    assert math.isnan(rate.value)
    for _ in range(5):
        now += 5.0
        for _ in range(450):
            now += 0.01
            rate.states += 1
            assert rate.note(now) is None
    assert rate.value == pytest.approx(100.0)


def test_slow_commands_are_reported_although_there_are_pauses_between_them():
    rate, warnings = CommandRate(100.0, 0.1), []
    for sent in range(500):
        rate.states += 2
        warnings.append(rate.note(0.02 * sent + 1.0 * (sent // 40)))
    assert rate.value == pytest.approx(50.0)
    assert any(warnings)
