"""Messages as bytes, against rclpy's own serialisation."""

import time

from geometry_msgs.msg import TwistStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.ros.wire import (
    JointStateReader,
    JointStateWriter,
    MalformedError,
    MessageError,
    OtherJointsError,
    SECOND,
    TrajectoryWriter,
    TwistReader,
    TwistWriter,
)
import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

LETTERS = st.text(st.characters(codec='utf-8', exclude_characters='\0'), max_size=20)
NAMES = st.lists(LETTERS.filter(bool), min_size=1, max_size=20, unique=True)
STAMPS = st.integers(0, 2**31 * SECOND - 1)
ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True, width=64)
NUMBERS = st.floats(-1e100, 1e100)


def joint_state(names, positions, velocities, stamp=0, frame='', effort=()):
    message = JointState(name=list(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.header.frame_id = frame
    message.position, message.velocity = list(positions), list(velocities)
    message.effort = list(effort)
    return message


def twist(numbers, stamp=0, frame='base'):
    message = TwistStamped()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.header.frame_id = frame
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, numbers)
    return message


def assert_same(raw, message):
    """Compare all but the bytes between the parts, which hold whatever was in memory."""
    expected = serialize_message(message)
    assert len(raw) == len(expected)
    assert raw[:12] == expected[:12]  # encoding and stamp
    read = deserialize_message(raw, type(message))
    assert repr(read) == repr(message)  # NaN is not equal to itself


def vectors(count, numbers=ANY_NUMBER):
    return st.lists(numbers, min_size=count, max_size=count)


# Joint states


@settings(deadline=None, max_examples=50)
@given(st.data(), NAMES, LETTERS)
def test_joint_states_are_written_as_rclpy_writes_them(data, names, frame):
    writer = JointStateWriter(names, frame)
    for _ in range(2):  # the second time over the first's numbers
        stamp = data.draw(STAMPS)
        positions, velocities = (np.array(data.draw(vectors(len(names)))) for _ in range(2))
        expected = joint_state(names, positions, velocities, stamp, frame)
        assert_same(writer.write(stamp, positions, velocities), expected)


@settings(deadline=None, max_examples=50)
@given(st.data(), NAMES, LETTERS)
def test_joint_states_of_any_order_and_company_are_read_by_name(data, names, frame):
    wanted = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    efforts = data.draw(st.sampled_from([0, len(names)]))
    reader = JointStateReader(wanted)
    for _ in range(2):  # the second time by what was learnt of the first
        stamp = data.draw(STAMPS)
        numbers = np.array([data.draw(vectors(len(names), NUMBERS)) for _ in range(2)])
        effort = data.draw(vectors(efforts))
        raw = serialize_message(joint_state(names, *numbers, stamp, frame, effort))
        read_stamp, *read = reader.read(raw)
        assert read_stamp == stamp
        expected = numbers[:, [names.index(name) for name in wanted]]
        np.testing.assert_array_equal(read, expected, strict=True)


def test_one_reader_understands_several_writers_in_turn():
    reader = JointStateReader(('a', 'b'))
    messages = (
        (joint_state('ab', (1, 2), (3, 4)), (1, 2), (3, 4)),
        (joint_state('ba', (1, 2), (3, 4)), (2, 1), (4, 3)),
        (joint_state('xba', (0, 1, 2), (0, 3, 4), frame='base'), (2, 1), (4, 3)),
        (joint_state('ab', (5, 6), (7, 8), frame='world'), (5, 6), (7, 8)),
    )
    for message, positions, velocities in messages * 2:
        _, *read = reader.read(serialize_message(message))
        np.testing.assert_array_equal(read, (positions, velocities))


def test_messages_of_one_writer_go_through_rclpy_once(monkeypatch):
    calls = []

    def count(raw, kind):
        calls.append(kind)
        return deserialize_message(raw, kind)

    monkeypatch.setattr('mher_ros.ros.wire.deserialize_message', count)
    names = [f'joint{"x" * length}' for length in range(15)]
    states, state_reader = JointStateWriter(names, 'base'), JointStateReader(names[::-1])
    twists, twist_reader = TwistWriter('base'), TwistReader('base')
    for stamp in range(5):
        state_reader.read(states.write(stamp, np.ones(15), np.zeros(15)))
        twist_reader.read(twists.write(stamp, np.full(3, stamp)))
    assert calls == [JointState, TwistStamped]


def test_big_endian_joint_states_are_read():
    reader = JointStateReader(('joint',))
    message = joint_state(('joint',), (1.5,), (-2.5,), 7 * SECOND + 9)
    raw = (
        b'\0\0\0\0'
        + np.array((7, 9, 1), '>u4').tobytes()  # stamp, and an empty frame's length
        + b'\0\0\0\0'  # its end, padded
        + np.array((1, 6), '>u4').tobytes()  # one name of six bytes
        + b'joint\0\0\0'
        + np.array(1, '>u4').tobytes()
        + b'\0\0\0\0'
        + np.array(1.5, '>f8').tobytes()
        + np.array(1, '>u4').tobytes()
        + b'\0\0\0\0'
        + np.array(-2.5, '>f8').tobytes()
        + np.array(0, '>u4').tobytes()
    )
    assert deserialize_message(raw, JointState) == message
    for _ in range(2):
        stamp, positions, velocities = reader.read(raw)
        assert (stamp, positions, velocities) == (7 * SECOND + 9, 1.5, -2.5)


@pytest.mark.parametrize(
    ('message', 'sentence'),
    [
        (joint_state('a', (1,), (1,)), 'the joint state lacks b; it tells of a'),
        (joint_state('', (), ()), 'the joint state lacks a, b; it tells of no joint'),
        (
            joint_state('ab', (1, 2), ()),
            'the joint state has 2 names but 0 entries of velocity',
        ),
        (
            joint_state('abc', (1, 2), (1, 2, 3)),
            'the joint state has 3 names but 2 entries of position',
        ),
        (
            joint_state('ab', (1, np.nan), (1, 2)),
            'a finite position of b is expected, got nan',
        ),
        (
            joint_state('ab', (1, 2), (np.inf, 2)),
            'a finite velocity of a is expected, got inf',
        ),
    ],
)
def test_a_joint_state_that_cannot_be_used_is_refused_with_the_reason(message, sentence):
    reader = JointStateReader(('a', 'b'))
    for before in (None, joint_state('ab', (1, 2), (3, 4))):
        if before is not None:
            reader.read(serialize_message(before))
        with pytest.raises(MessageError) as caught:
            reader.read(serialize_message(message))
        assert str(caught.value) == sentence
    # and does not spoil what comes after it
    _, *read = reader.read(serialize_message(joint_state('ab', (1, 2), (3, 4))))
    np.testing.assert_array_equal(read, ((1, 2), (3, 4)))


def test_a_joint_that_is_not_asked_for_may_tell_nonsense():
    reader = JointStateReader(('a',))
    for _ in range(2):
        _, *read = reader.read(serialize_message(joint_state('ax', (1, np.nan), (2, np.nan))))
        np.testing.assert_array_equal(read, ((1,), (2,)))


def test_a_stamp_before_1970_is_read_like_any_other():
    message = joint_state('a', (1,), (2,))
    message.header.stamp.sec = -3
    assert JointStateReader(['a']).read(serialize_message(message))[0] == -3 * SECOND


def test_efforts_that_differ_each_time_are_passed_over(monkeypatch):
    messages = [
        serialize_message(joint_state('ab', (1.0, 2.0), (3.0, 4.0), number, effort=(number, 5.0)))
        for number in range(3)
    ]
    reader = JointStateReader(['b', 'a'])
    reader.read(messages[0])
    monkeypatch.setattr('mher_ros.ros.wire.deserialize_message', None)  # needed no longer
    for number, raw in enumerate(messages):
        stamp, positions, velocities = reader.read(raw)
        assert (stamp, positions.tolist(), velocities.tolist()) == (number, [2, 1], [4, 3])


def test_a_joint_state_without_velocities_is_at_rest_for_those_who_do_not_need_them():
    messages = [serialize_message(joint_state('ab', (1.0, float(n)), ())) for n in range(3)]
    with pytest.raises(MessageError, match='2 names but 0 entries of velocity'):
        JointStateReader(['a', 'b']).read(messages[0])
    reader = JointStateReader(['a', 'b'], needs_velocities=False)
    for number, raw in enumerate(messages):
        _, positions, velocities = reader.read(raw)
        assert (positions.tolist(), velocities.tolist()) == ([1, number], [0, 0])
    _, _, velocities = reader.read(serialize_message(joint_state('ab', (1, 2), (3, 4))))
    assert velocities.tolist() == [3, 4]
    unknown = serialize_message(joint_state('ab', (1, 2), (np.nan, np.nan)))
    assert reader.read(unknown)[2].tolist() == [0, 0]
    with pytest.raises(MessageError, match='velocity of b is expected, got nan'):
        reader.read(serialize_message(joint_state('ab', (1, 2), (3, np.nan))))
    with pytest.raises(MessageError, match='velocity of a is expected, got nan'):
        JointStateReader(['a', 'b']).read(unknown)
    with pytest.raises(MessageError, match='2 names but 1 entries of velocity'):
        reader.read(serialize_message(joint_state('ab', (1, 2), (3,))))


def test_a_state_of_none_of_the_joints_is_told_from_one_that_lacks_some():
    reader = JointStateReader(['a', 'b'])
    with pytest.raises(OtherJointsError):
        reader.read(serialize_message(joint_state('cd', (1, 2), (3, 4))))
    with pytest.raises(MessageError, match='lacks b') as refused:
        reader.read(serialize_message(joint_state('ad', (1, 2), (3, 4))))
    assert not isinstance(refused.value, OtherJointsError)


def test_trajectories_of_one_point_are_written_as_rclpy_writes_them():
    point = JointTrajectoryPoint(positions=[0.1, -2.0])
    point.time_from_start.sec, point.time_from_start.nanosec = 1, 250_000_000
    message = JointTrajectory(joint_names=['one', 'other'], points=[point])
    writer = TrajectoryWriter(['one', 'other'], 1.25)
    assert_same(writer.write(0, np.array([0.1, -2.0])), message)


def test_a_vector_of_the_wrong_length_is_not_written():
    writer = JointStateWriter(('a', 'b'))
    with pytest.raises(ValueError, match='expected 2 numbers, got 3'):
        writer.write(0, np.zeros(2), np.zeros(3))


# Twists


@settings(deadline=None, max_examples=50)
@given(LETTERS, STAMPS, st.lists(ANY_NUMBER, min_size=1, max_size=3))
def test_twists_are_written_as_rclpy_writes_them(frame, stamp, velocity):
    padded = [*velocity, *np.zeros(6 - len(velocity))]
    writer = TwistWriter(frame)
    writer.write(1, np.ones(3))
    assert_same(writer.write(stamp, np.array(velocity)), twist(padded, stamp, frame))


@settings(deadline=None, max_examples=50)
@given(LETTERS, STAMPS, vectors(3, NUMBERS), st.booleans())
def test_twists_of_the_frame_or_of_none_are_read(frame, stamp, velocity, named):
    raw = serialize_message(twist([*velocity, 0, 0, 0], stamp, frame if named else ''))
    read_stamp, read = TwistReader(frame).read(raw)
    assert read_stamp == stamp
    np.testing.assert_array_equal(read, velocity)


@pytest.mark.parametrize(
    ('message', 'sentence'),
    [
        (
            twist([1, 0, 0, 0, 0, 0], frame='tool'),
            "a twist in frame 'base' is expected, got 'tool'",
        ),
        (twist([0, np.nan, 0, 0, 0, 0]), 'a twist of finite numbers is expected, got'),
        (twist([0, 0, 0, 0, -np.inf, 0], frame=''), 'a twist of finite numbers is expected, got'),
        (
            twist([1, 0, 0, 0, 0, 0.1]),
            'the tool keeps its orientation: no angular velocity is taken, got',
        ),
    ],
)
def test_a_twist_that_cannot_be_used_is_refused_with_the_reason(message, sentence):
    with pytest.raises(MessageError) as caught:
        TwistReader('base').read(serialize_message(message))
    assert str(caught.value).startswith(sentence)


# Messages that are none


@st.composite
def damaged(draw, raw):
    """Return bytes like ``raw``, cut, changed or with absurd lengths in them."""
    raw = bytearray(raw)
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(raw) - 1))
        raw[place] = draw(st.integers(0, 255))
    if draw(st.booleans()):
        place = 4 * draw(st.integers(1, len(raw) // 4 - 1))
        raw[place : place + 4] = draw(st.sampled_from((2**32 - 1, 2**31, 10**8))).to_bytes(
            4, 'little'
        )
    return bytes(raw[: draw(st.integers(0, len(raw)) | st.just(len(raw)))])


def read_or_refused(reader, raw):
    """Return what is read, None if it is refused: nothing else may happen, nor take long."""
    began = time.monotonic()
    try:
        return reader.read(raw)
    except MessageError as error:
        assert len(str(error)) < 1000
        return None
    finally:
        assert time.monotonic() - began < 1.0


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damaged_joint_states_are_refused_or_read_as_rclpy_reads_them(data):
    names = ['shoulder', 'elbow', 'wrist']
    whole = serialize_message(joint_state(names, (1, 2, 3), (4, 5, 6), 7, 'base', (8, 9, 10)))
    reader = JointStateReader(names, needs_velocities=data.draw(st.booleans()))
    if data.draw(st.booleans()):
        reader.read(whole)
    for _ in range(3):  # what one left behind may not disturb the next
        raw = data.draw(damaged(whole))
        read = read_or_refused(reader, raw)
        if read is not None:
            message = deserialize_message(raw, JointState)
            order = [list(message.name).index(name) for name in names]
            np.testing.assert_array_equal(read[1], np.array(message.position)[order])
        stamp, positions, _ = reader.read(whole)
        assert stamp == 7
        np.testing.assert_array_equal(positions, (1, 2, 3))


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_damaged_twists_are_refused_or_read_as_rclpy_reads_them(data):
    whole = serialize_message(twist((1, 2, 3, 0, 0, 0), 7))
    reader = TwistReader('base')
    for _ in range(3):
        raw = data.draw(damaged(whole))
        read = read_or_refused(reader, raw)
        if read is not None:
            linear = deserialize_message(raw, TwistStamped).twist.linear
            np.testing.assert_array_equal(read[1], (linear.x, linear.y, linear.z))
        np.testing.assert_array_equal(reader.read(whole)[1], (1, 2, 3))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=500))
def test_any_bytes_are_refused(raw):
    for reader in (JointStateReader(('shoulder',)), TwistReader('base')):
        assert read_or_refused(reader, raw) is None or raw


@pytest.mark.parametrize('raw', [b'', b'\0', b'\0\1\0\0' + bytes(2 * 1024 * 1024)])
def test_what_is_no_message_at_all_is_malformed(raw):
    for reader in (JointStateReader(('shoulder',)), TwistReader('base')):
        with pytest.raises(MalformedError):
            reader.read(raw)
