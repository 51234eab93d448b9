"""Obstacles at run time: which of them move, and whether their places are known."""

import dataclasses
import math

from mher_ros.errors import MherError
from mher_ros.robots.collision_model import Part
from mher_ros.robots.obstacle_slots import ObstacleSlots, SLOTS
from mher_ros.robots.scene import CollisionOptions
from mher_ros.robots.solids import Solid
from mher_ros.robots.workspace import Refusal
import numpy as np

MOVED = 0.005  # displacement from its first place from which on an obstacle moves [m]
REGULAR = 5  # updates in a row, each within the time-out, after which further ones are expected


class ObstacleError(MherError):
    """An obstacle was refused."""

    def __init__(self, text: str, code: Refusal) -> None:
        super().__init__(text)
        self.code = code.value


@dataclasses.dataclass
class _Tracked:
    slot: int
    first: Solid
    """Where it was first."""
    last: Solid
    known_at: float
    """Time at which it was there [s]."""
    heard_at: float
    """Time of its last update [s]."""
    moves: bool
    updates: int = 1
    lost: str = ''
    """Why its place is not known; empty: it is."""


class ObstacleTracker:
    """
    Assigns obstacles by name to slots.

    An obstacle moves once it was ``MOVED`` away from its first place, or if it is said to. Its
    place is known for ``obstacle_timeout``. So it is for one that is updated regularly: its sender
    may have ended. Another one rests, and needs no updates.

    An obstacle that was announced, but cannot be used, is refused until it is put or removed.

    One that is put again within ``obstacle_timeout`` of its removal is the same one: some senders
    delete it before each update.

    Times are those of the command path [s]. The caller holds the lock of the command path.
    """

    def __init__(self, slots: ObstacleSlots, options: CollisionOptions) -> None:
        self._slots, self._options = slots, options
        self._tracked: dict[str, _Tracked] = {}
        self._refused: dict[str, str] = {}
        self._removed: dict[str, tuple[_Tracked, float]] = {}
        """Obstacles that were removed, and when [s]."""

    @property
    def slots(self) -> dict[str, int]:
        """The slots of the obstacles that there are."""
        return {name: one.slot for name, one in self._tracked.items()}

    @property
    def parts(self) -> dict[int, Part]:
        """The obstacles that there are, by their slots."""
        return {one.slot: self._slots.parts[one.slot] for one in self._tracked.values()}

    def put(
        self, name: str, solid: Solid, known_at: float, now: float, moves: bool = False
    ) -> str:
        """
        Take an obstacle, given in the base frame, and say if it moves too fast; else return ''.

        It was there at ``known_at`` [s]. ``moves``: even if it has not moved yet. ObstacleError:
        there are too many.
        """
        options, last = self._options, self._tracked.get(name)
        slot = self._free_slot() if last is None else last.slot
        if last is None and name in self._removed:
            removed, removed_at = self._removed.pop(name)
            last = removed if now - removed_at <= options.obstacle_timeout else None
        one = _Tracked(slot, solid, solid, known_at, now, moves)
        wrong = ''
        if last is not None:
            one.first = last.first
            one.moves = moves or last.moves or _distance(last.first, solid) > MOVED
            if now - last.heard_at <= options.obstacle_timeout:
                one.updates = last.updates + 1
            travelled, passed = _distance(last.last, solid), max(0.0, known_at - last.known_at)
            if MOVED + options.obstacle_speed * passed < travelled < math.inf:
                wrong = (
                    f'{name} moved by {travelled:.3f} m within {passed:.3f} s; up to '
                    f'{options.obstacle_speed:g} m/s are expected (collision.obstacle_speed)'
                )
        self._tracked[name] = one
        self._refused.pop(name, None)
        speed = options.obstacle_speed if one.moves else 0.0
        self._slots.put(slot, name, solid, speed, known_at)
        return wrong

    def remove(self, name: str, now: float) -> None:
        """Remove an obstacle, if there is one of that name, or one that was refused."""
        timeout, one = self._options.obstacle_timeout, self._tracked.get(name)
        lately = {
            other: (removed, at)
            for other, (removed, at) in self._removed.items()
            if now - at <= timeout
        }
        if one is not None:
            lately[name] = one, now
        self.forget(name)
        self._removed = lately

    def forget(self, name: str) -> None:
        """Remove an obstacle; if it is put again, it is another one."""
        self._refused.pop(name, None)
        self._removed.pop(name, None)
        one = self._tracked.pop(name, None)
        if one is not None:
            self._slots.remove(one.slot)

    def lose(self, name: str, reason: str) -> None:
        """Record that the place of an obstacle is not known, or that a new one is refused."""
        if name in self._tracked:
            self._tracked[name].lost = reason
        else:
            self._refused[name] = reason

    @property
    def refused(self) -> str:
        """An obstacle that is refused and why, in a sentence for people; empty: there is none."""
        return next((f'{name}: {reason}' for name, reason in self._refused.items()), '')

    def problem(self, now: float) -> str:
        """Return which place is not known, in a sentence for people; empty: all are known."""
        timeout = self._options.obstacle_timeout
        for name, one in self._tracked.items():
            if one.lost:
                return f'{name}: {one.lost}'
            at = one.known_at if one.moves else one.heard_at
            if (one.moves or one.updates >= REGULAR) and now - at > timeout:
                return f'{name} was not updated for more than {timeout:g} s'
        return ''

    def _free_slot(self) -> int:
        free = np.flatnonzero(~self._slots.is_used)
        if not free.size:
            raise ObstacleError(
                f'at most {SLOTS} obstacles are expected, got one more', Refusal.TOO_MANY
            )
        return int(free[0])


def _distance(one: Solid, other: Solid) -> float:
    """Return the largest distance between their vertices [m]; infinite for other shapes."""
    if one.vertices.shape != other.vertices.shape:
        return math.inf
    away = np.linalg.norm(one.vertices - other.vertices, axis=1).max()
    return float(away + abs(one.radius - other.radius))
