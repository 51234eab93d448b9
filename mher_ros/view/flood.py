"""How much browsers may send: an allowance for each, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable
import time

__all__ = ['Allowance', 'FloodError', 'MessageMeter', 'TooLongError']

LONGEST_MESSAGE = 64 * 1024
"""Bytes of a message; those of a page have a few hundred."""
MESSAGES_PER_SECOND = 200.0
"""A page sends up to 50 a second of its camera, and 20 of whatever is dragged."""
MOST_AT_ONCE = 200.0
"""Messages that may come in a burst."""
FREE_BYTES = 1024
"""A message that is longer counts as several of this length."""


class FloodError(ConnectionError):
    """A browser sends more than any page does."""


class TooLongError(ConnectionError):
    """A browser sends a message that is longer than those of any page."""


class Allowance:
    """So many of something in a second, and so many at once after a pause."""

    def __init__(
        self, per_second: float, at_once: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._at_once, self._clock = per_second, at_once, clock
        self._left, self._at = at_once, clock()

    def take(self, amount: float = 1.0) -> bool:
        """Return whether so much is left; if so, it is used up."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._at) * self._per_second)
        self._at = now
        if amount > self._left:
            return False
        self._left -= amount
        return True


class MessageMeter:
    """
    Counts the messages of a websocket in the bytes that a browser sends.

    Only the heads of frames are looked at. Messages in several frames are none of a page's: only
    those too long for one frame are sent so.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._allowance = Allowance(MESSAGES_PER_SECOND, MOST_AT_ONCE, clock)
        self._head = b''
        self._payload = 0
        """Bytes of the frame under way that are still to come."""

    def count(self, data: bytes) -> None:
        """Take the next bytes; FloodError or TooLongError if it is more than one may send."""
        at = 0
        while at < len(data):
            if self._payload:
                skipped = min(self._payload, len(data) - at)
                self._payload -= skipped
                at += skipped
                continue
            self._head += data[at : at + 1]
            at += 1
            length = _payload_length(self._head)
            if length is not None:
                self._begin(length)

    def _begin(self, length: int) -> None:
        is_whole = self._head[0] & 0x80
        self._head, self._payload = b'', length
        if length > LONGEST_MESSAGE or not is_whole:
            raise TooLongError
        if not self._allowance.take(max(1.0, length / FREE_BYTES)):
            raise FloodError(f'at most {MESSAGES_PER_SECOND:g} messages a second are expected')


def _payload_length(head: bytes) -> int | None:
    """Return the bytes that follow the head of a frame; None if it is not complete yet."""
    if len(head) < 2:
        return None
    short = head[1] & 0x7F
    wide = {126: 2, 127: 8}.get(short, 0)
    mask = 4 if head[1] & 0x80 else 0
    if len(head) < 2 + wide + mask:
        return None
    return int.from_bytes(head[2 : 2 + wide], 'big') if wide else short
