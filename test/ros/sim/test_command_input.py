"""Twists to a simulated arm."""

from geometry_msgs.msg import TwistStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.ros.common.raw_messages import MalformedError, MessageError
from mher_ros.ros.sim.command_input import read_twist
import numpy as np
import pytest
from rclpy.serialization import serialize_message

FRAMES = st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=20)
VECTORS = st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3)


def twist(numbers, frame='base'):
    message = TwistStamped()
    message.header.frame_id = frame
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, numbers)
    return serialize_message(message)


@settings(deadline=None, max_examples=50)
@given(FRAMES, VECTORS, st.booleans())
def test_twists_of_the_frame_or_of_none_are_read(frame, velocity, named):
    raw = twist([*velocity, 0, 0, 0], frame if named else '')
    np.testing.assert_array_equal(read_twist(raw, frame), velocity)


@pytest.mark.parametrize(
    ('raw', 'parts'),
    [
        (twist([1, 0, 0, 0, 0, 0], frame='tool'), ("frame 'base'", "'tool'")),
        (twist([0, np.nan, 0, 0, 0, 0]), ('finite', 'nan')),
        (twist([0, 0, 0, 0, -np.inf, 0], frame=''), ('finite', '-inf')),
        (twist([0, 1e200, 0, 0, 0, 0]), ('up to 1e+06', '1e+200')),
        (twist([1, 0, 0, 0, 0, 0.1]), ('angular', '0.1')),
    ],
    ids=range(5),  # the bytes between the parts of a message differ
)
def test_a_twist_that_cannot_be_used_is_refused_with_the_reason(raw, parts):
    with pytest.raises(MessageError) as caught:
        read_twist(raw, 'base')
    assert all(part in str(caught.value) for part in parts)


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damaged_twists_are_refused_or_read(data):
    raw = bytearray(twist((1, 2, 3, 0, 0, 0)))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        velocity = read_twist(bytes(raw[: data.draw(st.integers(0, len(raw)))]), 'base')
        assert np.isfinite(velocity).all()
    except MessageError:
        pass


@pytest.mark.parametrize('raw', [b'', b'\0', b'\0\1\0\0' + bytes(2 * 1024 * 1024)])
def test_what_is_no_message_at_all_is_malformed(raw):
    with pytest.raises(MalformedError):
        read_twist(raw, 'base')
