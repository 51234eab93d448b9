from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.simulation.drives import Trajectory
import numpy as np
import pytest

TIMES = st.lists(st.floats(0.0, 5.0), min_size=1, max_size=6).map(sorted)


def test_lines_lead_from_the_start_through_the_points_at_their_times():
    trajectory = Trajectory((0.0, 1.0), (1.0, 2.0), ((2.0, 1.0), (2.0, 3.0)))
    ways = [trajectory.advance(0.5) for _ in range(4)]
    np.testing.assert_allclose(ways, ((1.0, 1.0), (2.0, 1.0), (2.0, 2.0), (2.0, 3.0)), atol=1e-12)


def test_it_is_over_once_the_last_point_has_been_given_out():
    trajectory = Trajectory((0.0,), (0.25,), ((1.0,),))
    assert not trajectory.is_over()
    assert trajectory.advance(0.2) == pytest.approx(0.8)
    assert not trajectory.is_over()
    assert trajectory.advance(0.2) == 1.0
    assert trajectory.is_over()


def test_a_point_without_a_time_is_asked_for_at_once():
    trajectory = Trajectory((0.0, 0.0), (0.0,), ((5.0, -5.0),))
    np.testing.assert_array_equal(trajectory.advance(0.01), (5.0, -5.0))
    assert trajectory.is_over()


def test_of_points_at_the_same_time_the_last_counts():
    trajectory = Trajectory((0.0,), (1.0, 1.0, 2.0), ((1.0,), (10.0,), (20.0,)))
    assert trajectory.advance(0.5) == pytest.approx(0.5)
    assert trajectory.advance(0.5) == 10.0
    assert trajectory.advance(0.5) == pytest.approx(15.0)


@settings(deadline=None)
@given(times=TIMES, period=st.floats(0.01, 1.0), data=st.data())
def test_no_set_point_leaves_what_was_asked_for_and_the_end_is_exact(times, period, data):
    numbers = st.lists(st.floats(-3.0, 3.0), min_size=2, max_size=2)
    points = data.draw(st.lists(numbers, min_size=len(times), max_size=len(times)))
    start = data.draw(numbers)
    trajectory = Trajectory(start, times, points)
    low, high = np.min([start, *points], axis=0), np.max([start, *points], axis=0)
    while not trajectory.is_over():
        way = trajectory.advance(period)
        assert np.all(way >= low - 1e-12)
        assert np.all(way <= high + 1e-12)
    np.testing.assert_array_equal(way, points[-1])
