"""How much a browser may send, counted in the frames of its websocket."""

from hypothesis import given, settings
from hypothesis import strategies as st
from mher_ros.view.flood import (
    Allowance,
    FloodError,
    LONGEST_MESSAGE,
    MessageMeter,
    MESSAGES_PER_SECOND,
    MOST_AT_ONCE,
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
    meter, whole = MessageMeter(clock), MessageMeter(clock)
    raw = b''.join(map(frame, sizes))
    whole.count(raw)
    while raw:
        size = data.draw(st.integers(1, len(raw)))
        meter.count(raw[:size])
        raw = raw[size:]
    for one in (meter, whole):
        sent = 0
        with pytest.raises(FloodError):
            for _ in range(int(MOST_AT_ONCE) + 1):
                one.count(TINY)
                sent += 1
        cost = sum(max(1.0, size / 1024) for size in sizes)
        assert sent == int(MOST_AT_ONCE - cost)


def test_what_a_page_sends_is_never_too_much():
    clock = Clock()
    meter = MessageMeter(clock)
    for number in range(10_000):
        clock.now = number * 1.01 / MESSAGES_PER_SECOND
        meter.count(frame(300))


@pytest.mark.parametrize('size', [LONGEST_MESSAGE + 1, 300_000_000])
def test_a_message_that_is_too_long_is_refused_by_its_head(size):
    head = b'\x82\xff' + size.to_bytes(8, 'big') + bytes(4)
    with pytest.raises(TooLongError):
        MessageMeter().count(head)


def test_a_message_in_parts_is_refused():
    with pytest.raises(TooLongError):
        MessageMeter().count(frame(10, fin=False))


def test_an_allowance_comes_back_with_time():
    clock = Clock()
    allowance = Allowance(2.0, 3.0, clock)
    assert [allowance.take() for _ in range(4)] == [True, True, True, False]
    clock.now = 0.5
    assert allowance.take()
    assert not allowance.take()
    clock.now = 100.0
    assert [allowance.take() for _ in range(4)] == [True, True, True, False]
