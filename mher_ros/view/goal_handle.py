"""A goal that people drag in the browser."""

from __future__ import annotations

from collections.abc import Callable
import math
import threading
import time

import numpy as np
from numpy.typing import ArrayLike, NDArray
import viser

__all__ = ['GoalHandle']

Vector = NDArray[np.float64]

IDLE = 10.0
"""A hand that has not moved for this long has gone elsewhere without letting go [s]."""
CLICK = 1e-4
"""A handle that was moved less was only clicked [m]."""
NAME = '/goal'


class GoalHandle:
    """
    Arrows along the axes of the page, in the hand of one browser at a time.

    A goal is told only when it is let go: an arm that followed the mouse would be led through
    whatever lies on the way. A browser that is lost while it drags has not let go: the handle
    goes back to where it was, and nothing is told.

    Browsers move it by a thread of the server's, whoever has the page by another: each does what
    it does as a whole.
    """

    def __init__(
        self, server: viser.ViserServer, on_release: Callable[[Vector], None], size: float = 0.18
    ) -> None:
        """``on_release`` gets the position (3,) [m]; arrows are about ``size`` [m] long."""
        self._server, self._on_release = server, on_release
        # Taken before any lock of viser's, never while one is held.
        self._lock = threading.Lock()
        self._rest = np.zeros(3)
        self._holder: int | None = None
        self._dragged = self._rest
        self._moved_at = -math.inf
        self._handle = server.scene.add_transform_controls(
            NAME,
            scale=size,
            line_width=4.0,
            disable_rotations=True,
            # Also to be found inside the arm's hand.
            depth_test=False,
            visible=False,
        )
        # Of a callback that is not a coroutine viser does not keep the order.
        self._handle.on_update(self._on_update)

    @property
    def is_held(self) -> bool:
        """Whether somebody has it in hand."""
        return self._holder is not None and time.monotonic() - self._moved_at < IDLE

    def place(self, position: ArrayLike) -> None:
        """Show it at ``position`` (3,) [m]; but not out of somebody's hand."""
        with self._lock:
            self._rest = np.array(position, np.float64)
            if not self.is_held:
                # A hand that has rested for too long and comes back finds it empty.
                self._holder = None
                self._go_back()
                self._handle.visible = True

    def hide(self) -> None:
        """Take it off the page, out of anybody's hand."""
        with self._lock:
            self._holder = None
            self._handle.visible = False

    async def _on_update(self, event: viser.TransformControlsEvent) -> None:
        with self._lock:
            self._take(event)

    def _take(self, event: viser.TransformControlsEvent) -> None:
        # viser ends the drag of a browser that is gone as if it had let go.
        is_there = event.client_id in self._server.get_clients()
        position = _vector(event.target.position)
        # viser keeps whatever it is told, and passes it on to all others; with an orientation that
        # is none the handle would vanish.
        self._handle._impl.wxyz = np.array((1.0, 0.0, 0.0, 0.0))
        if position is None:
            self._handle._impl.position = self._rest.copy()
        is_free = not self.is_held or self._holder == event.client_id
        if event.phase == 'start' and is_there and is_free and self._handle.visible:
            self._holder, self._dragged = event.client_id, self._rest
            self._moved_at = time.monotonic()
            return
        if event.client_id != self._holder or event.client_id is None:
            # Not in that hand: it stays where the one who has it sees it.
            self._show(self._dragged if self.is_held else self._rest)
            return
        if not is_there or position is None:
            self._holder = None
            self._go_back()
        elif event.phase == 'update':
            self._dragged, self._moved_at = position, time.monotonic()
        elif event.phase == 'end':
            self._holder = None
            if np.abs(self._dragged - self._rest).max() > CLICK and self._handle.visible:
                self._on_release(self._dragged)
            else:
                self._go_back()

    def _go_back(self) -> None:
        self._show(self._rest)

    def _show(self, position: Vector) -> None:
        self._handle.position = position.copy()


def _vector(told: object) -> Vector | None:
    """Return what a browser calls a position (3,), if it is one."""
    try:
        position = np.array(told, np.float64)
    except (TypeError, ValueError):
        return None
    return position if position.shape == (3,) and np.isfinite(position).all() else None
