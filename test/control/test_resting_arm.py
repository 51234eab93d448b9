"""Whether an arm stands still, and where."""

from mher_ros.control.resting_arm import RestingArm
import numpy as np

STEP = 50_000_000
"""Between two stamps [ns]."""


def states(arm, *places, seconds=0.05, first=10.0):
    for number, place in enumerate(places):
        arm.take(first + number * seconds, (number + 1) * STEP, np.array([place, 1.0]))


def test_too_few_states_or_too_little_time_say_nothing():
    arm = RestingArm()
    states(arm, 0.0, 0.0, 0.0, 0.0, seconds=0.2)
    assert arm.spread() is None
    arm = RestingArm()
    states(arm, *20 * [0.0], seconds=0.01)
    assert arm.spread() is None


def test_the_spread_is_that_of_the_last_quarter_second():
    arm = RestingArm()
    states(arm, 0.5, 0.0, 0.01, 0.0, 0.0, 0.02, 0.0)
    assert arm.spread() == 0.02
    states(arm, *8 * [0.3], first=10.35)
    assert arm.spread() == 0.0


def test_slow_states_count_by_five():
    arm = RestingArm()
    states(arm, 0.9, 0.0, 0.1, 0.0, 0.0, 0.0, seconds=0.15)
    assert arm.spread() == 0.1


def test_the_position_is_not_that_of_a_reading_that_differs():
    arm = RestingArm()
    states(arm, 0.0, 0.001, 0.0, 0.0, 0.0, 0.005)
    assert arm.position().tolist() == [0.0, 1.0]


def test_one_state_is_enough_if_no_time_is_asked_for():
    arm = RestingArm(0.0)
    states(arm, 0.4)
    assert arm.spread() == 0.0
    assert arm.position().tolist() == [0.4, 1.0]
    arm.clear()
    assert arm.spread() is None
