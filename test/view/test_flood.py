"""How much a browser may send, counted in the frames of its websocket."""

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.view.access_control import (
    FloodError,
    LONGEST_MESSAGE,
    MessageLimit,
    MESSAGES_PER_SECOND,
    MOST_AT_ONCE,
    RateLimit,
    TooLongError,
)
import pytest
from websockets.frames import Frame, Opcode


class Clock:
    """A clock that a test sets [s]."""

    now = 0.0

    def __call__(self):
        return self.now


def frame(size, opcode=Opcode.BINARY, fin=True):
    return Frame(opcode, bytes(size), fin).serialize(mask=True)


TINY = frame(1)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 125, 126, 300, 4000]), max_size=20), st.data())
def test_messages_are_counted_however_their_bytes_come(sizes, data):
    clock = Clock()
    limit, whole = MessageLimit(clock), MessageLimit(clock)
    raw = b''.join(map(frame, sizes))
    whole.count(raw)
    while raw:
        size = data.draw(st.integers(1, len(raw)))
        limit.count(raw[:size])
        raw = raw[size:]
    for one in (limit, whole):
        sent = 0
        with pytest.raises(FloodError):
            for _ in range(int(MOST_AT_ONCE) + 1):
                one.count(TINY)
                sent += 1
        cost = sum(max(1.0, size / 1024) for size in sizes)
        assert sent == int(MOST_AT_ONCE - cost)


def test_what_a_page_sends_is_never_too_much():
    clock = Clock()
    limit = MessageLimit(clock)
    for number in range(10_000):
        clock.now = number * 1.01 / MESSAGES_PER_SECOND
        limit.count(frame(300))


@pytest.mark.parametrize('size', [LONGEST_MESSAGE + 1, 300_000_000])
def test_a_message_that_is_too_long_is_refused_by_its_head(size):
    head = b'\x82\xff' + size.to_bytes(8, 'big') + bytes(4)
    with pytest.raises(TooLongError):
        MessageLimit().count(head)


def test_a_message_in_parts_is_refused():
    with pytest.raises(TooLongError):
        MessageLimit().count(frame(10, fin=False))


def test_an_limit_comes_back_with_time():
    clock = Clock()
    limit = RateLimit(2.0, 3.0, clock)
    assert [limit.take() for _ in range(4)] == [True, True, True, False]
    clock.now = 0.5
    assert limit.take()
    assert not limit.take()
    clock.now = 100.0
    assert [limit.take() for _ in range(4)] == [True, True, True, False]
