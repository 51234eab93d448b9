"""Serialised messages of lockstep, read and written without a Python message object."""

# Messages of one arm differ in their stamp and numbers only. A template keeps the other bytes; the
# numbers are read and written in place. A message that does not fit goes through rclpy.
#
# Time per message, template against rclpy, as the lowest of 15 repeats of timeit (AMD EPYC,
# 2.4 GHz, with other load):
# - joint state of 15 joints: write 5 us against 50 us, read 18 us against 64 us;
# - action of 4 entries: write 3 us against 34 us, read 4 us against 40 us;
# - trajectory of one point and 7 joints: write 3 us against 36 us;
# - twist: write 1 us against 5 us, in a running policy_node 30 us against 60 us.
# A lockstep step of a task writes and reads one state and one action: this saves about 160 us.

from array import array
from collections.abc import Sequence
import math
import struct
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped
from mher_ros.errors import MherError
from mher_ros.interface import Vector
import numpy as np
from numpy.typing import NDArray
from rclpy.duration import Duration
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState, Joy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

STAMP = struct.Struct('<iI')
DOUBLE = 8  # bytes of a float64
STAMP_AT = 4  # a header's stamp follows the four bytes of the encoding
SECOND = 1_000_000_000  # in nanoseconds
MAX_ERROR_TEXT = 500  # characters
MAX_BYTES = 1024 * 1024
"""Largest message about one arm; reading a larger one would delay the next command."""
MAX_BYTES_ANY = 16 * MAX_BYTES  # largest message of any kind, such as the model of an arm
ROUNDING = 1e-6  # by which an entry of an action may exceed 1


def stamp_of(time: Any) -> int:
    """Return a ``builtin_interfaces/Time`` in ns; it may be negative."""
    return int(time.sec) * SECOND + int(time.nanosec)


class MessageError(MherError, ValueError):
    """A message that cannot be used; the text says what was expected and what was received."""

    def __init__(self, text: str) -> None:
        # The text may quote a whole message, but must fit into a line of a log.
        super().__init__(text if len(text) <= MAX_ERROR_TEXT else f'{text[:MAX_ERROR_TEXT]}...')


class MalformedError(MessageError):
    """Bytes that are not a message of the expected type."""


class OtherJointsError(MessageError):
    """A joint state of another robot, or of another part of this one."""


def deserialise(raw: bytes, kind: Any, most: int = MAX_BYTES) -> Any:
    """Return the message of type ``kind``; MalformedError if there is none in ``most`` bytes."""
    if len(raw) > most:
        raise MalformedError(
            f'a {kind.__name__} of at most {most} bytes is expected, got {len(raw)}'
        )
    try:
        return deserialize_message(raw, kind)
    except Exception as error:  # its type depends on the middleware
        raise MalformedError(
            f'a {kind.__name__} is expected, got {len(raw)} bytes that cannot be read as one'
        ) from error


Block = tuple[Any, str]  # a part of a message, and the name of its field with numbers


class _Template:
    """The bytes of a message around its stamp and its blocks of numbers."""

    def __init__(self, message: Any, *blocks: Block, received: bytes = b'') -> None:
        """Find the blocks of ``message``, whose numbers are replaced."""
        # The padding of a message holds arbitrary bytes. So others are compared with the message
        # as ``received``, if its encoding is the same.
        marks: list[array[float]] = []
        for part, field in blocks:
            numbers = getattr(part, field)
            marks.append(array(numbers.typecode, _marks(sum(map(len, marks)), len(numbers))))
            setattr(part, field, marks[-1])
        raw = serialize_message(message)
        is_same = len(received) == len(raw) and received[:STAMP_AT] == raw[:STAMP_AT]
        self._raw = bytearray(received if is_same else raw)
        self._blocks: list[tuple[int, int, int, str]] = []
        end, layout, fixed = STAMP_AT + STAMP.size, f'<{STAMP_AT}xiI', [(0, STAMP_AT)]
        for block in filter(len, marks):
            start = raw.index(block.tobytes(), end)
            fixed.append((end, start))
            layout += f'{start - end}x{len(block)}{block.typecode}'
            end = start + len(block) * block.itemsize
            self._blocks.append((start, end, len(block), f'<{block.typecode}'))
        fixed.append((end, len(raw)))
        self._numbers = struct.Struct(layout)
        self._fixed = [(start, end, bytes(self._raw[start:end])) for start, end in fixed]

    def fits(self, raw: bytes) -> bool:
        """Return whether ``raw`` differs in stamp and numbers only."""
        return len(raw) == len(self._raw) and all(
            raw[start:end] == part for start, end, part in self._fixed
        )

    def write(self, stamp: int, *vectors: NDArray[np.floating]) -> bytes:
        """Return the message with this stamp [ns] and the numbers of each block."""
        STAMP.pack_into(self._raw, STAMP_AT, *divmod(stamp, SECOND))
        for (start, end, count, kind), vector in zip(self._blocks, vectors, strict=True):
            if len(vector) != count:
                raise ValueError(f'expected {count} numbers, got {len(vector)}')
            self._raw[start:end] = np.asarray(vector, kind).tobytes()
        return bytes(self._raw)

    def read(self, raw: bytes) -> tuple[int, list[float]]:
        """Return stamp [ns] and the numbers of all blocks of a message that fits."""
        seconds, nanoseconds, *numbers = self._numbers.unpack_from(raw)
        return seconds * SECOND + nanoseconds, numbers


def _marks(first: int, count: int) -> list[float]:
    """Return numbers, floats too, whose bytes occur in no length or text of a message."""
    return [(first + index + 1) * np.pi * 1e-30 for index in range(count)]


class JointStateWriter(_Template):
    """Writes joint states of one arm: positions and velocities (n,)."""

    def __init__(self, names: Sequence[str], frame: str = '') -> None:
        zeros = [0.0] * len(names)
        message = JointState(name=list(names), position=zeros, velocity=zeros)
        message.header.frame_id = frame
        super().__init__(message, (message, 'position'), (message, 'velocity'))


class TrajectoryWriter(_Template):
    """Writes trajectories of one point (k,), which start at once if the stamp is 0."""

    def __init__(self, names: Sequence[str], time: float) -> None:
        """``time``: of the point, after the start [s]."""
        point = JointTrajectoryPoint(positions=[0.0] * len(names))
        point.time_from_start = Duration(seconds=time).to_msg()
        message = JointTrajectory(joint_names=list(names), points=[point])
        super().__init__(message, (point, 'positions'))


class ToolWriter:
    """Writes twists or poses of a tool: messages with a header that end with their numbers."""

    def __init__(self, message: Any) -> None:
        self._raw = bytearray(serialize_message(message))

    def write(self, stamp: Time, *numbers: float) -> bytes:
        """Return the message with these numbers: all of them, in the order of their fields."""
        STAMP.pack_into(self._raw, STAMP_AT, stamp.sec, stamp.nanosec)
        size = len(numbers) * DOUBLE
        struct.pack_into(f'<{len(numbers)}d', self._raw, len(self._raw) - size, *numbers)
        return bytes(self._raw)


class ActionWriter(_Template):
    """Writes actions of ``size`` entries, as the axes of a ``Joy``."""

    def __init__(self, size: int) -> None:
        message = Joy(axes=[0.0] * size)
        super().__init__(message, (message, 'axes'))


class _Reader:
    """Reads messages of one type: a new kind by rclpy, those that fit its template directly."""

    _kind: type
    _template: _Template | None = None

    def _numbers(self, raw: bytes) -> tuple[int, list[float]]:
        """Return stamp [ns] and numbers."""
        if self._template is not None and self._template.fits(raw):
            return self._template.read(raw)
        message = deserialise(raw, self._kind)
        blocks = self._checked_blocks(message)
        numbers = [number for part, field in blocks for number in getattr(part, field)]
        self._template = _Template(message, *blocks, received=raw)
        return stamp_of(message.header.stamp), numbers

    def _checked_blocks(self, message: Any) -> list[Block]:
        """Return the blocks of a message; MessageError if it cannot be used."""
        raise NotImplementedError


class JointStateReader(_Reader):
    """Reads the states of some joints by name, in any order and among other joints."""

    _kind = JointState

    def __init__(self, names: Sequence[str], needs_velocities: bool = True) -> None:
        """``needs_velocities``: refuse a state without velocities; otherwise they become 0."""
        self._names, self._needs_velocities = list(names), needs_velocities
        self._order: list[int] | None = None

    def read(self, raw: bytes) -> tuple[int, Vector, Vector]:
        """Return stamp [ns], positions (n,) and velocities (n,)."""
        stamp, numbers = self._numbers(raw)
        count = self._count
        positions = np.array(numbers[:count])
        velocities = np.zeros(count)
        if self._has_velocities:
            velocities = np.array(numbers[count : 2 * count])
        if self._order is not None:
            positions, velocities = positions[self._order], velocities[self._order]
        if not math.isfinite(positions.sum() + velocities.sum()):  # other joints do not matter
            if not self._needs_velocities and np.isnan(velocities).all():
                velocities = np.zeros_like(velocities)  # ros2_control publishes NaN for unknown
            for what, values in (('position', positions), ('velocity', velocities)):
                for name, value in zip(self._names, values.tolist(), strict=True):
                    if not math.isfinite(value):
                        raise MessageError(f'a finite {what} of {name} is expected, got {value}')
        return stamp, positions, velocities

    def _checked_blocks(self, message: Any) -> list[Block]:
        names, count = list(message.name), len(message.name)
        missing = [name for name in self._names if name not in names]
        if missing:
            kind = OtherJointsError if len(missing) == len(self._names) else MessageError
            raise kind(
                f'the joint state lacks {", ".join(missing)}; it has '
                f'{", ".join(names) or "no joint"}'
            )
        has_velocities = self._needs_velocities or len(message.velocity) > 0
        for what in ('position', 'velocity') if has_velocities else ('position',):
            entries = len(getattr(message, what))
            if entries != count:
                raise MessageError(
                    f'the joint state has {count} names but {entries} entries of {what}'
                )
        self._count, self._has_velocities = count, has_velocities
        self._order = None if names == self._names else [names.index(one) for one in self._names]
        # Efforts are not used, but differ in every message of a real arm.
        return [(message, 'position'), (message, 'velocity'), (message, 'effort')]


class PoseReader:
    """Reads measured poses of a tool: their positions, in one frame."""

    def __init__(self, frame: str) -> None:
        self._frame = frame

    def read(self, raw: bytes) -> tuple[int, Vector]:
        """Return stamp [ns] and position (3,) [m]."""
        message = deserialise(raw, PoseStamped)
        frame, at = message.header.frame_id, message.pose.position
        if frame != self._frame:
            raise MessageError(f'a pose in the frame {self._frame} is expected, got {frame!r}')
        position = np.array((at.x, at.y, at.z))
        if not np.isfinite(position).all():
            raise MessageError(f'a finite position is expected, got {position.tolist()}')
        return stamp_of(message.header.stamp), position


class ActionReader(_Reader):
    """Reads actions of ``size`` entries within [-1, 1], from the axes of a ``Joy``."""

    _kind = Joy

    def __init__(self, size: int) -> None:
        self._size = size

    def read(self, raw: bytes) -> tuple[int, Vector]:
        """Return stamp [ns] and action (k,); an entry may exceed 1 by a rounding error."""
        stamp, numbers = self._numbers(raw)
        for number in numbers:
            if not abs(number) <= 1.0 + ROUNDING:  # refuses NaN, too
                raise MessageError(f'an action within [-1, 1] is expected, got {numbers}')
        return stamp, np.array(numbers)

    def _checked_blocks(self, message: Any) -> list[Block]:
        if len(message.axes) != self._size:
            raise MessageError(
                f'an action of {self._size} entries is expected, got {len(message.axes)}'
            )
        return [(message, 'axes')]
