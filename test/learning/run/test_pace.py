from mher_ros.learning.run.progress import Pace
import pytest


def test_nobody_knows_how_long_it_takes_before_a_step_is_done():
    pace = Pace()
    assert pace.seconds_until(100, 1.0) is None
    pace.note(40, 1.0)
    pace.note(40, 5.0)
    assert pace.seconds_until(100, 6.0) is None


def test_the_pace_so_far_tells_how_long_it_takes():
    pace = Pace()
    pace.note(40, 100.0)  # A run that goes on: these steps took other time.
    pace.note(60, 104.0)
    pace.note(80, 110.0)
    pace.note(80, 114.0)
    assert pace.seconds_until(120, 110.0) == pytest.approx(10.0)
    assert pace.seconds_until(120, 114.0) == pytest.approx(6.0)
    assert pace.seconds_until(120, 999.0) == 0.0
    assert pace.seconds_until(80, 110.0) == 0.0
