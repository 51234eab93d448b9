"""No velocity leaves that is too fast, too sudden, or leads out of the box."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mher_ros.control.filter.motion_limiter import MotionLimiter, MotionLimits
from mher_ros.options import OptionError
import numpy as np
import pytest

LOW, HIGH = np.array((0.2, -0.3, 0.1)), np.array((0.8, 0.3, 0.6))
MIDDLE = (LOW + HIGH) / 2
LIMITS = MotionLimits()
TICK = 0.01
NAN = float('nan')


def limiter(low=LOW, high=HIGH, **limits):
    return MotionLimiter(MotionLimits(**limits), low, high)


def settled(motion, position, wanted, ticks=200):
    """Return the velocity that a wish leads to in the end, the tool held where it is."""
    for _ in range(ticks):
        velocity = motion.next(np.array(position), np.array(wanted, float), TICK)
    return velocity


def travel(motion, position, wanted, ticks):
    """Return all positions of a tool that does as told."""
    path = [np.array(position)]
    for _ in range(ticks):
        velocity = motion.next(path[-1], np.array(wanted, float), TICK)
        path.append(path[-1] + velocity * TICK)
    return np.array(path)


def test_a_wish_within_all_limits_is_granted_to_the_bit():
    wanted = np.array((0.003, -0.001, 0.002))
    np.testing.assert_array_equal(limiter().next(MIDDLE, wanted, TICK), wanted)


def test_the_speed_is_capped_and_the_direction_kept():
    velocity = settled(limiter(), MIDDLE, (3.0, 0.0, -4.0))
    np.testing.assert_allclose(velocity, (0.15, 0.0, -0.2), rtol=1e-6)
    assert np.linalg.norm(velocity) <= LIMITS.speed


def test_the_cap_counts_along_a_diagonal_too():
    velocity = settled(limiter(), MIDDLE, (0.25, 0.25, 0.25))
    assert np.linalg.norm(velocity) == pytest.approx(0.25)


def test_the_velocity_changes_no_faster_than_the_acceleration_allows():
    motion = limiter()
    first = motion.next(MIDDLE, np.array((0.25, 0.0, 0.0)), TICK)
    np.testing.assert_allclose(first, (0.01, 0.0, 0.0), rtol=1e-6)
    settled(motion, MIDDLE, (0.25, 0.0, 0.0))
    back = motion.next(MIDDLE, np.array((-0.25, 0.0, 0.0)), TICK)
    np.testing.assert_allclose(back, (0.24, 0.0, 0.0), rtol=1e-6)


def test_a_long_pause_allows_no_larger_change_than_the_longest_tick():
    for pause in (10.0, float('inf')):
        velocity = limiter(acceleration=0.5).next(MIDDLE, np.array((0.25, 0.0, 0.0)), pause)
        np.testing.assert_allclose(velocity, (0.05, 0.0, 0.0), rtol=1e-6)


@pytest.mark.parametrize('dt', [0.0, -1.0, NAN, -float('inf')])
def test_no_time_no_change(dt):
    motion = limiter()
    before = settled(motion, MIDDLE, (0.1, 0.0, 0.0), ticks=5)
    np.testing.assert_array_equal(motion.next(MIDDLE, np.array((-0.2, 0.1, 0.0)), dt), before)


@pytest.mark.parametrize('bad', [NAN, float('inf'), -float('inf'), 1e308, -1e7])
@pytest.mark.parametrize('axis', range(3))
def test_a_wish_that_is_not_finite_or_absurd_brakes(bad, axis):
    motion = limiter()
    settled(motion, MIDDLE, (0.2, 0.0, 0.1))
    wanted = np.array((0.2, 0.0, 0.1))
    wanted[axis] = bad
    speeds = [np.linalg.norm(motion.next(MIDDLE, wanted, TICK)) for _ in range(50)]
    assert (np.diff(speeds) <= 0).all()
    assert speeds[-1] == 0.0


@pytest.mark.parametrize('bad', [NAN, float('inf'), -float('inf')])
@pytest.mark.parametrize('axis', range(3))
def test_a_place_that_is_not_finite_brakes(bad, axis):
    motion, place = limiter(), MIDDLE.copy()
    settled(motion, MIDDLE, (0.2, 0.0, 0.1))
    place[axis] = bad
    speeds = [
        np.linalg.norm(motion.next(place, np.array((0.2, 0.0, 0.1)), TICK)) for _ in range(50)
    ]
    assert (np.diff(speeds) <= 0).all()
    assert speeds[-1] == 0.0


@pytest.mark.parametrize('axis', range(3))
@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_the_tool_arrives_at_a_face_and_stays_inside(axis, sign):
    wanted = np.zeros(3)
    wanted[axis] = sign
    path = travel(limiter(), MIDDLE, wanted, 600)
    face = (HIGH if sign > 0 else LOW)[axis]
    assert ((path >= LOW) & (path <= HIGH)).all()
    assert path[-1, axis] == pytest.approx(face, abs=1e-3)
    np.testing.assert_allclose(np.delete(path[-1] - MIDDLE, axis), 0.0, atol=1e-12)


@pytest.mark.parametrize('limits', [{}, {'acceleration': 0.1, 'longest_tick': TICK}])
def test_the_tool_arrives_in_a_corner_and_stays_inside(limits):
    # Faces that are reached at once share the braking.
    path = travel(limiter(HIGH - 0.6, HIGH, **limits), HIGH - 0.3, (1.0, 1.0, 1.0), 1200)
    assert (path <= HIGH).all()
    np.testing.assert_allclose(path[-1], HIGH, atol=1e-3)


@pytest.mark.parametrize('distance', [0.001, 0.01, 0.05])
def test_the_tool_is_no_slower_near_a_face_than_it_must_be(distance):
    speed = settled(limiter(), (0.5, 0.0, HIGH[2] - distance), (0.0, 0.0, 1.0))[2]
    braking = LIMITS.acceleration / np.sqrt(3)
    stopped_after = speed * LIMITS.longest_tick + speed**2 / (2 * braking)
    assert stopped_after == pytest.approx(distance)


def test_a_wish_along_a_face_takes_nothing_from_the_braking():
    motion, position = limiter(acceleration=0.3), MIDDLE.copy()
    for tick in range(600):
        sideways = 1.0 if tick % 2 else -1.0
        wanted = np.array((1.0, sideways, -sideways))
        position = position + TICK * motion.next(position, wanted, TICK)
        assert position[0] <= HIGH[0]


def test_a_late_command_near_a_face_does_not_lead_outside():
    path = travel(limiter(), MIDDLE, (1.0, -1.0, 1.0), 600)
    late = path[:-1] + np.diff(path, axis=0) / TICK * LIMITS.longest_tick
    assert ((late >= LOW - 1e-12) & (late <= HIGH + 1e-12)).all()


def test_outside_the_box_a_tool_at_rest_goes_no_further():
    outside = HIGH + 0.1
    velocity = settled(limiter(), outside, (1.0, 1.0, 1.0))
    np.testing.assert_array_equal(velocity, 0.0)


def test_outside_the_box_a_moving_tool_is_braked_with_all_there_is():
    motion = limiter()
    settled(motion, MIDDLE, (0.2, 0.0, 0.0))
    outside = np.array((HIGH[0] + 0.01, 0.0, 0.3))
    velocity = motion.next(outside, np.array((0.2, 0.2, 0.0)), TICK)
    np.testing.assert_allclose(velocity, (0.19, 0.0, 0.0), rtol=1e-6)


def test_from_outside_the_tool_comes_back_if_that_is_wanted():
    start = np.array((HIGH[0] + 0.2, 0.0, 0.3))
    path = travel(limiter(), start, (-0.25, 0.0, 0.0), 150)
    assert (np.diff(path[:, 0]) < 0).all()
    assert path[-1, 0] < HIGH[0]


def test_it_starts_from_the_velocity_that_is_set():
    motion = limiter()
    settled(motion, MIDDLE, (0.25, 0.0, 0.0))
    motion.velocity = np.zeros(3)
    np.testing.assert_array_equal(motion.velocity, 0.0)
    velocity = motion.next(MIDDLE, np.array((0.25, 0.0, 0.0)), TICK)
    np.testing.assert_allclose(velocity, (0.01, 0.0, 0.0), rtol=1e-6)


def test_what_was_given_out_may_be_changed():
    motion = limiter()
    motion.next(MIDDLE, np.array((0.001, 0.0, 0.0)), TICK)[:] = 7.0
    motion.velocity[:] = 7.0
    np.testing.assert_array_equal(motion.velocity, (0.001, 0.0, 0.0))


@pytest.mark.parametrize(
    ('low', 'high', 'text'),
    [
        ((0.0, 0.0, 0.5), (1.0, 1.0, 0.4), r'box.low must lie below box.high .* got .*0.5.*0.4'),
        ((0.0, 0.0, 0.0), (1.0, 0.0, 1.0), 'box.low must lie below'),
        ((0.0, NAN, 0.0), (1.0, 1.0, 1.0), r'box.low takes three finite numbers, got .*nan'),
        ((0.0, 0.0, 0.0), (1.0, 1.0, float('inf')), 'box.high takes three finite numbers'),
        ((0.0, 0.0), (1.0, 1.0), 'box.low takes three finite numbers'),
        ('left', (1.0, 1.0, 1.0), "box.low takes three finite numbers, got 'left'"),
    ],
)
def test_a_box_that_is_none_is_refused(low, high, text):
    with pytest.raises(OptionError, match=text):
        limiter(low, high)


@pytest.mark.parametrize('key', ['speed', 'acceleration', 'longest_tick'])
@pytest.mark.parametrize('value', [0.0, -1.0, NAN, 1e3])
def test_limits_that_limit_nothing_are_refused(key, value):
    with pytest.raises(OptionError, match=key):
        limiter(**{key: value})


VECTORS = arrays(np.float64, 3, elements=st.floats() | st.floats(-2.0, 2.0))
TIMES = st.floats() | st.floats(0.0, 0.2)
CAPS = st.builds(
    MotionLimits,
    speed=st.floats(0.001, 2.0),
    acceleration=st.floats(0.01, 20.0),
    longest_tick=st.floats(0.001, 0.5),
)


@pytest.mark.nightly
@given(CAPS, st.lists(st.tuples(VECTORS, VECTORS, TIMES), max_size=12))
def test_whatever_comes_in_no_limit_is_exceeded(limits, ticks):
    motion, last = MotionLimiter(limits, LOW, HIGH), np.zeros(3)
    for position, wanted, dt in ticks:
        velocity = motion.next(position, wanted, dt)
        assert np.isfinite(velocity).all()
        assert np.linalg.norm(velocity) <= limits.speed
        time = min(dt, limits.longest_tick) if dt > 0 else 0.0
        assert np.linalg.norm(velocity - last) <= limits.acceleration * time + 1e-15
        # Further out of the box only while it brakes.
        out = ((position > HIGH) & (velocity > 0)) | ((position < LOW) & (velocity < 0))
        # (Squares of what is below 1e-150 m/s are 0.)
        assert (np.abs(velocity)[out] <= np.abs(last)[out] + 1e-150).all()
        last = velocity


@pytest.mark.nightly
@given(
    CAPS,
    st.tuples(*[st.floats(0.0, 1.0)] * 3).map(np.array),
    st.lists(st.tuples(VECTORS, st.floats(0.0, 1.0), st.integers(1, 20)), max_size=10),
)
def test_a_tool_that_does_as_told_stays_in_the_box(limits, start, ticks):
    motion, position, dt = MotionLimiter(limits, LOW, HIGH), LOW + start * (HIGH - LOW), 0.0
    for wanted, part, times in ticks:
        for _ in range(times):
            velocity = motion.next(position, wanted, dt)
            dt = part * limits.longest_tick
            position = position + velocity * dt
            assert ((position >= LOW - 1e-9) & (position <= HIGH + 1e-9)).all()
