"""
Joint states, twists and trajectories as bytes.

Building a Python message of thirty numbers takes longer than sending it. Messages of one arm
differ in their stamp and numbers only, so the bytes around these are kept and compared, and the
numbers read and written in place. Anything that differs goes through rclpy.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import struct
from typing import Any

from geometry_msgs.msg import TwistStamped
from mher_ros.errors import MherError
import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

__all__ = [
    'SECOND',
    'STAMP',
    'STAMP_AT',
    'JointStateReader',
    'JointStateWriter',
    'MOST_BYTES',
    'MOST_BYTES_OF_ANY',
    'MalformedError',
    'MessageError',
    'OtherJointsError',
    'deserialise',
    'stamp_of',
    'TrajectoryWriter',
    'TwistReader',
    'TwistWriter',
]

Vector = NDArray[np.float64]

STAMP = struct.Struct('<iI')
STAMP_AT = 4
"""A header's stamp follows the four bytes that say how the rest is encoded."""
SECOND = 1_000_000_000
"""In nanoseconds."""
LONGEST_TEXT = 500
"""Characters of an error."""
MOST_BYTES = 1024 * 1024
"""Of a message about one arm; reading more would hold up whoever waits for the next one."""
MOST_BYTES_OF_ANY = 16 * MOST_BYTES
"""Of any message, such as the model of an arm."""


def stamp_of(time: Any) -> int:
    """Return a ``builtin_interfaces/Time`` in ns; any there is, also before 1970."""
    return int(time.sec) * SECOND + int(time.nanosec)


class MessageError(MherError, ValueError):
    """A message that cannot be used; the text says what was expected and what came."""

    def __init__(self, text: str) -> None:
        # It may quote all that came, and is meant for a line of a log.
        super().__init__(text if len(text) <= LONGEST_TEXT else f'{text[:LONGEST_TEXT]}...')


class MalformedError(MessageError):
    """Bytes that are no message of the type that they came as."""


class OtherJointsError(MessageError):
    """A joint state of another robot, or of another part of this one."""


def deserialise(raw: bytes, kind: Any, most: int = MOST_BYTES) -> Any:
    """
    Return the message of type ``kind`` that the bytes stand for.

    MalformedError if they stand for none, or are more than ``most``.
    """
    if len(raw) > most:
        raise MalformedError(
            f'a {kind.__name__} of at most {most} bytes is expected, got {len(raw)}'
        )
    try:
        return deserialize_message(raw, kind)
    except Exception as error:  # whatever the middleware in use makes of it
        raise MalformedError(
            f'a {kind.__name__} is expected, got {len(raw)} bytes that cannot be read as one'
        ) from error


class JointStateWriter:
    """Joint states of one arm."""

    def __init__(self, names: Sequence[str], frame: str = '') -> None:
        count = len(names)
        message = JointState(name=list(names))
        message.header.frame_id = frame
        message.position, message.velocity = _marks(0, count), _marks(count, count)
        self._mould = _Mould(serialize_message(message), count, count)

    def write(self, stamp: int, positions: Vector, velocities: Vector) -> bytes:
        """Return the message; ``stamp`` in ns, vectors (n,)."""
        return self._mould.fill(stamp, positions, velocities)


class JointStateReader:
    """Joint states by name, whatever their order and whatever else is told."""

    def __init__(self, names: Sequence[str], needs_velocities: bool = True) -> None:
        """``needs_velocities``: refuse a state without any; else they are taken to be 0."""
        self._names, self._needs_velocities = list(names), needs_velocities
        self._mould: _Mould | None = None
        self._order: list[int] | None = None

    def read(self, raw: bytes) -> tuple[int, Vector, Vector]:
        """Return stamp [ns], positions (n,) and velocities (n,) of the joints asked for."""
        if self._mould is not None and self._mould.fits(raw):
            stamp, numbers = self._mould.numbers(raw)
        else:
            stamp, numbers = self._learn(raw)
        count = self._count
        positions = np.array(numbers[:count])
        velocities = np.array(numbers[count:]) if self._has_velocities else np.zeros(count)
        if self._order is not None:
            positions, velocities = positions[self._order], velocities[self._order]
        if not math.isfinite(positions.sum() + velocities.sum()):  # nobody looks at the others
            if not self._needs_velocities and np.isnan(velocities).all():
                velocities = np.zeros_like(velocities)  # ros2_control's word for "not known"
            self._check_finite('position', positions)
            self._check_finite('velocity', velocities)
        return stamp, positions, velocities

    def _check_finite(self, what: str, numbers: Vector) -> None:
        for name, number in zip(self._names, numbers.tolist(), strict=True):
            if not math.isfinite(number):
                raise MessageError(f'a finite {what} of {name} is expected, got {number}')

    def _learn(self, raw: bytes) -> tuple[int, list[float]]:
        message = deserialise(raw, JointState)
        told = list(message.name)
        missing = [name for name in self._names if name not in told]
        if missing:
            kind = OtherJointsError if len(missing) == len(self._names) else MessageError
            raise kind(
                f'the joint state lacks {", ".join(missing)}; it tells of '
                f'{", ".join(told) or "no joint"}'
            )
        count = len(told)
        self._has_velocities = self._needs_velocities or len(message.velocity) > 0
        for what in ('position', 'velocity') if self._has_velocities else ('position',):
            if len(getattr(message, what)) != count:
                raise MessageError(
                    f'the joint state has {count} names but '
                    f'{len(getattr(message, what))} entries of {what}'
                )
        self._count = count
        self._order = None
        if told != self._names:
            self._order = [told.index(name) for name in self._names]
        numbers = [*message.position, *message.velocity]
        counts = count, len(message.velocity), len(message.effort)
        message.position, message.velocity = _marks(0, count), _marks(count, counts[1])
        message.effort = _marks(count + counts[1], counts[2])
        # Efforts are passed over: they differ in every message of a real arm.
        self._mould = _Mould(serialize_message(message), *counts, seen=raw, passed_over=counts[2])
        return stamp_of(message.header.stamp), numbers


class TrajectoryWriter:
    """Trajectories of one point, a time [s] after they begin."""

    def __init__(self, names: Sequence[str], time: float) -> None:
        point = JointTrajectoryPoint(positions=_marks(0, len(names)))
        point.time_from_start = Duration(seconds=time).to_msg()
        message = JointTrajectory(joint_names=list(names), points=[point])
        self._mould = _Mould(serialize_message(message), len(names))

    def write(self, stamp: int, positions: Vector) -> bytes:
        """Return the message; ``stamp`` in ns, 0: it begins at once; positions (k,)."""
        return self._mould.fill(stamp, positions)


class TwistWriter:
    """Twists of a tool in one frame."""

    def __init__(self, frame: str) -> None:
        self._mould = _twist_mould(frame)

    def write(self, stamp: int, velocity: Vector) -> bytes:
        """Return the message; ``stamp`` in ns, linear velocity of up to three axes [m/s]."""
        linear = np.zeros(6)
        linear[: len(velocity)] = velocity
        return self._mould.fill(stamp, linear)


class TwistReader:
    """Twists of a tool in one frame, of which the linear part counts."""

    def __init__(self, frame: str) -> None:
        self._frame = frame
        self._mould: _Mould | None = None

    def read(self, raw: bytes) -> tuple[int, Vector]:
        """Return stamp [ns] and linear velocity (3,) [m/s]."""
        if self._mould is not None and self._mould.fits(raw):
            stamp, numbers = self._mould.numbers(raw)
        else:
            stamp, numbers = self._learn(raw)
        if not math.isfinite(sum(numbers)):
            raise MessageError(f'a twist of finite numbers is expected, got {numbers}')
        if any(numbers[3:]):
            raise MessageError(
                f'the tool keeps its orientation: no angular velocity is taken, got {numbers[3:]}'
            )
        return stamp, np.array(numbers[:3])

    def _learn(self, raw: bytes) -> tuple[int, list[float]]:
        message = deserialise(raw, TwistStamped)
        frame = message.header.frame_id
        if frame not in ('', self._frame):
            raise MessageError(f'a twist in frame {self._frame!r} is expected, got {frame!r}')
        self._mould = _twist_mould(frame, seen=raw)
        linear, angular = message.twist.linear, message.twist.angular
        numbers = [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]
        return stamp_of(message.header.stamp), numbers


class _Mould:
    """The bytes of a message around its stamp and its blocks of doubles."""

    def __init__(
        self, raw: bytes, *counts: int, seen: bytes | None = None, passed_over: int = 0
    ) -> None:
        """
        Find the blocks in a message whose doubles are ``_marks`` in order.

        The last ``passed_over`` of all doubles are not read.

        Between its parts a message holds whatever was in memory, so others are not compared with
        ``raw`` but with one as it came, ``seen``, if it is encoded in the same way.
        """
        alike = seen is not None and len(seen) == len(raw) and seen[:STAMP_AT] == raw[:STAMP_AT]
        self._raw = bytearray(seen if seen is not None and alike else raw)
        self._blocks: list[tuple[int, int]] = []
        first, end = 0, STAMP_AT + STAMP.size
        between: list[tuple[int, int]] = []
        blocks = ''
        for count in filter(None, counts):
            marks = np.array(_marks(first, count)).tobytes()
            start = raw.index(marks, end)
            between.append((end, start))
            blocks += f'{start - end}x{count}d'
            first, end = first + count, start + len(marks)
            self._blocks.append((start, count))
        self._numbers = struct.Struct(f'<{STAMP_AT}xiI{blocks}')
        self._read = sum(counts) - passed_over
        fixed = [(0, STAMP_AT), *between, (end, len(raw))]
        self._fixed = [(start, end, bytes(self._raw[start:end])) for start, end in fixed]

    def fits(self, raw: bytes) -> bool:
        """Return whether ``raw`` differs in stamp and numbers only."""
        return len(raw) == len(self._raw) and all(
            raw[start:end] == part for start, end, part in self._fixed
        )

    def fill(self, stamp: int, *vectors: Vector) -> bytes:
        """Return the message with this stamp [ns] and these numbers."""
        STAMP.pack_into(self._raw, STAMP_AT, *divmod(stamp, SECOND))
        for (start, count), vector in zip(self._blocks, vectors, strict=True):
            if len(vector) != count:
                raise ValueError(f'expected {count} numbers, got {len(vector)}')
            self._raw[start : start + 8 * count] = np.asarray(vector, '<f8').tobytes()
        return bytes(self._raw)

    def numbers(self, raw: bytes) -> tuple[int, list[float]]:
        """Return stamp [ns] and the numbers of all blocks of a message that fits."""
        seconds, nanoseconds, *numbers = self._numbers.unpack_from(raw)
        return seconds * SECOND + nanoseconds, numbers[: self._read]


def _marks(first: int, count: int) -> list[float]:
    """Return doubles that no length or text in a message looks like."""
    return [(first + index + 1) * np.pi * 1e-200 for index in range(count)]


def _twist_mould(frame: str, seen: bytes | None = None) -> _Mould:
    message: Any = TwistStamped()
    message.header.frame_id = frame
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = _marks(0, 6)
    return _Mould(serialize_message(message), 6, seen=seen)
