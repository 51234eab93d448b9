"""Messages as bytes, against rclpy's own serialisation."""

import struct
import time

from geometry_msgs.msg import PoseStamped, TwistStamped
from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.ros.common.raw_messages import (
    ActionReader,
    ActionWriter,
    JointStateReader,
    JointStateWriter,
    MalformedError,
    MessageError,
    OtherJointsError,
    SECOND,
    ToolWriter,
    TrajectoryWriter,
)
import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState, Joy
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

    monkeypatch.setattr('mher_ros.ros.common.raw_messages.deserialize_message', count)
    names = [f'joint{"x" * length}' for length in range(15)]
    states, state_reader = JointStateWriter(names, 'base'), JointStateReader(names[::-1])
    actions, action_reader = ActionWriter(4), ActionReader(4)
    for stamp in range(5):
        state_reader.read(states.write(stamp, np.ones(15), np.zeros(15)))
        action_reader.read(actions.write(stamp, np.full(4, 0.1 * stamp)))
    assert calls == [JointState, Joy]


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
        (joint_state('a', (1,), (1,)), 'the joint state lacks b; it has a'),
        (joint_state('', (), ()), 'the joint state lacks a, b; it has no joint'),
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
    # Serialised each by itself they could differ in their padding, too, which may hold anything.
    raw = serialize_message(joint_state('ab', (1.0, 2.0), (3.0, 4.0), effort=(0.0, 5.0)))
    messages = [
        raw[:8] + struct.pack('<I', number) + raw[12:-16] + struct.pack('<dd', number, 5.0)
        for number in range(3)
    ]
    reader = JointStateReader(['b', 'a'])
    reader.read(messages[0])
    monkeypatch.setattr(
        'mher_ros.ros.common.raw_messages.deserialize_message', None
    )  # needed no longer
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


@pytest.mark.parametrize('kind', [TwistStamped, PoseStamped])
def test_twists_and_poses_are_written_as_rclpy_writes_them(kind):
    message = kind()
    message.header.frame_id = 'a_base'
    writer = ToolWriter(message)
    message.header.stamp.sec, message.header.stamp.nanosec = -3, 999_999_999
    if kind is TwistStamped:
        parts = message.twist.linear, message.twist.angular
    else:
        parts = message.pose.position, message.pose.orientation
    fields = [(part, name) for part in parts for name in part.get_fields_and_field_types()]
    numbers = [0.1 * number for number in range(1, len(fields) + 1)]
    for (part, name), number in zip(fields, numbers, strict=True):
        setattr(part, name, number)
    assert_same(writer.write(message.header.stamp, *numbers), message)


def test_a_vector_of_the_wrong_length_is_not_written():
    writer = JointStateWriter(('a', 'b'))
    with pytest.raises(ValueError, match='expected 2 numbers, got 3'):
        writer.write(0, np.zeros(2), np.zeros(3))


# Actions


def joy(axes, stamp=0, frame='', buttons=()):
    message = Joy(axes=[float(axis) for axis in axes], buttons=list(buttons))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, SECOND)
    message.header.frame_id = frame
    return message


ACTIONS = st.integers(1, 7).flatmap(lambda size: vectors(size, st.floats(-1.0, 1.0, width=32)))


@settings(deadline=None, max_examples=50)
@given(STAMPS, ACTIONS)
def test_actions_are_written_as_rclpy_writes_them(stamp, action):
    writer = ActionWriter(len(action))
    writer.write(1, np.ones(len(action)))
    assert_same(writer.write(stamp, np.array(action, np.float32)), joy(action, stamp))


@settings(deadline=None, max_examples=50)
@given(LETTERS, STAMPS, ACTIONS, st.lists(st.integers(0, 1), max_size=3))
def test_actions_come_back_to_the_bit_also_from_a_joystick(frame, stamp, action, buttons):
    reader, sent = ActionReader(len(action)), np.array(action, np.float32)
    messages = joy(action, stamp, frame, buttons), joy(-sent, stamp), joy(action, stamp, frame)
    for message, expected in zip(messages, (sent, -sent, sent), strict=True):
        for _ in range(2):
            read_stamp, read = reader.read(serialize_message(message))
            assert read_stamp == stamp
            assert read.astype(np.float32).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ('action', 'sentence'),
    [
        ((0.1,), 'an action of 2 entries is expected, got 1'),
        ((), 'an action of 2 entries is expected, got 0'),
        ((0.1, 0.2, 0.3), 'an action of 2 entries is expected, got 3'),
        ((0.1, np.nan), r'an action within [-1, 1] is expected, got [0.1'),
        ((-np.inf, 0.1), r'an action within [-1, 1] is expected, got [-inf'),
        ((0.0, 1.0001), r'an action within [-1, 1] is expected, got [0.0, 1.0001'),
    ],
)
def test_an_action_that_cannot_be_used_is_refused_with_the_reason(action, sentence):
    reader = ActionReader(2)
    for _ in range(2):
        with pytest.raises(MessageError) as caught:
            reader.read(serialize_message(joy(action)))
        assert str(caught.value).startswith(sentence)
        np.testing.assert_array_equal(reader.read(serialize_message(joy((1, -1))))[1], (1, -1))


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
def test_damaged_actions_are_refused_or_read_as_rclpy_reads_them(data):
    whole = serialize_message(joy((0.5, -0.25), 7))
    reader = ActionReader(2)
    for _ in range(3):
        raw = data.draw(damaged(whole))
        read = read_or_refused(reader, raw)
        if read is not None:
            np.testing.assert_array_equal(read[1], deserialize_message(raw, Joy).axes)
        np.testing.assert_array_equal(reader.read(whole)[1], (0.5, -0.25))


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=500))
def test_any_bytes_are_refused(raw):
    for reader in (JointStateReader(('shoulder',)), ActionReader(2)):
        assert read_or_refused(reader, raw) is None or raw


@pytest.mark.parametrize('raw', [b'', b'\0', b'\0\1\0\0' + bytes(2 * 1024 * 1024)])
def test_what_is_no_message_at_all_is_malformed(raw):
    for reader in (JointStateReader(('shoulder',)), ActionReader(2)):
        with pytest.raises(MalformedError):
            reader.read(raw)
