"""The page of a running arm: its state, and the buttons and goals of people."""

from collections.abc import Callable, Sequence
import dataclasses
import enum
import html
import math
import queue
import threading
import time
from typing import Any, NamedTuple

from mher_ros.interface import Vector
from mher_ros.view.access_control import STOP_PATH
from mher_ros.view.drawings import Drawings
from mher_ros.view.scene import ArmScene, Curves, FROM_THE_SIDE, look_at, set_stage
import numpy as np
from numpy.typing import ArrayLike
import viser

IDLE = 10.0  # time without motion after which a browser no longer holds the handle [s]
CLICK = 1e-4  # shorter motions of the handle are clicks [m]
LONGEST_NOTE = 500  # characters of a notification
GOOD, BAD, PLAIN = '#2b8a3e', '#c92a2a', '#343a40'


class Button(enum.Enum):
    STOP = 'Stop the arm'
    RESUME = 'Resume'
    RANDOM_GOAL = 'Random goal'
    RESET = 'Reset simulation'
    SAVE = 'Save checkpoint'
    STOP_TRAINING = 'Save and stop training'


LOOKS: dict[Button, dict[str, Any]] = {
    Button.RESUME: {'color': 'green', 'icon': viser.Icon.PLAYER_PLAY},
    Button.RANDOM_GOAL: {'icon': viser.Icon.TARGET},
    Button.RESET: {'icon': viser.Icon.REFRESH},
    Button.SAVE: {'icon': viser.Icon.DEVICE_FLOPPY},
    Button.STOP_TRAINING: {'color': 'orange', 'icon': viser.Icon.PLAYER_STOP},
}


# A separate request: viser handles the messages of all browsers in turn. The reply is empty, so
# that the browser stays on the page.
STOP_HTML = f"""
<form method="post" action="{STOP_PATH}" style="padding:0.3em 0.9em">
<button style="width:100%;height:2.4em;border:0;border-radius:4px;background:{BAD};color:white;\
font-weight:600;cursor:pointer">{Button.STOP.value}</button></form>"""


CAN_MOVE = (Button.RANDOM_GOAL, Button.RESUME)  # buttons that may start a motion


class Event(NamedTuple):
    button: Button | None
    goal: Vector | None  # position (3,) [m] at which the goal handle was released
    at: float  # `time.monotonic` [s]
    edition: int  # of the page at which it happened


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    text: str
    is_good: bool | None = None  # green, red, or neutral colour


class LivePage:
    """
    Shows an arm, and collects what people do in ``events``; only these are thread-safe.

    The threads of the server only put events into the queue. Two actions are not events: to stop
    the arm is a separate request to ``PageServer``, and ``GoalHandle`` has its own lock.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        # Not a SimpleQueue: CPython's blocks forever if a signal arrives at its timeout.
        self.events: queue.Queue[Event] = queue.Queue()
        self._server, self._edition = server, 0
        set_stage(server)
        self.arm: ArmScene | None = None
        self.drawings = Drawings(server)
        self.goal = GoalHandle(server, lambda position: self._put(None, position, self._edition))
        # Above the text, whose height changes: the buttons stay in place.
        self._stop = server.gui.add_html(STOP_HTML, visible=False)
        self._buttons: dict[Button, viser.GuiButtonHandle] = {
            button: self._add_button(button) for button in Button if button is not Button.STOP
        }
        self._shapes = server.gui.add_checkbox(
            'Collision shapes',
            False,
            hint='what the safety filter keeps apart: amber is near, red holds the arm back',
        )
        self._text = server.gui.add_html('')
        self._lines: tuple[Line, ...] = ()
        self.curves = Curves(server)

    @property
    def frame(self) -> str:
        """The link whose axes are those of the page; empty if no arm is shown."""
        return '' if self.arm is None else self.arm.base

    @property
    def wants_shapes(self) -> bool:
        """Whether the collision shapes of the arm are to be shown."""
        return bool(self._shapes.value)

    def show_arm(self, urdf: str, base: str = '') -> None:
        """Replace the arm by that of a URDF; ArmSceneError if it cannot be drawn."""
        arm = ArmScene(self._server, urdf, base)
        if self.arm is not None:
            self.arm.remove()
        self.arm = arm

    def renew(self, edition: int) -> None:
        """Replace all that can move the arm: what people do with it has another edition."""
        # A browser's message names what it was done with, however late it is received.
        if edition == self._edition:
            return
        self.goal.renew(edition)
        # Not before: a release of the earlier handle must not count as one of this edition.
        self._edition = edition
        for button in CAN_MOVE:
            before = self._buttons[button]
            self._buttons[button] = self._add_button(
                button, order=before.order, visible=before.visible, disabled=before.disabled
            )
            before.remove()

    def say(self, lines: Sequence[Line]) -> None:
        if tuple(lines) != self._lines:
            self._lines = tuple(lines)
            self._text.content = (
                f'<div style="padding-bottom:0.6em">{"".join(map(_line_html, lines))}</div>'
            )

    def offer(self, buttons: Sequence[Button], useless: Sequence[Button] = ()) -> None:
        """Show only these buttons; the ``useless`` ones are disabled."""
        _set(self._stop, 'visible', Button.STOP in buttons)
        for button, handle in self._buttons.items():
            _set(handle, 'visible', button in buttons)
            _set(handle, 'disabled', button in useless)

    def look_at(self, place: Vector, size: float = 1.0) -> None:
        """Point all cameras at ``place`` (3,) [m]; an object of ``size`` [m] is visible."""
        look_at(self._server, place, max(1.0, size) * np.array(FROM_THE_SIDE))

    def notify(self, title: str, text: str, is_good: bool = False) -> None:
        """Show a notification in all browsers; the text is not interpreted as markup."""
        for client in self._server.get_clients().values():
            client.add_notification(
                title=title,
                body=text[:LONGEST_NOTE],
                auto_close_seconds=8.0,
                color='green' if is_good else 'orange',
            )

    def _add_button(
        self, button: Button, visible: bool = False, **state: Any
    ) -> viser.GuiButtonHandle:
        look = LOOKS[button] | state
        handle = self._server.gui.add_button(button.value, visible=visible, **look)
        edition = self._edition

        async def press(_: object) -> None:
            self._put(button, None, edition)

        handle.on_click(press)
        return handle

    def _put(self, button: Button | None, goal: Vector | None, edition: int) -> None:
        self.events.put(Event(button, goal, time.monotonic(), edition))


class GoalHandle:
    """Arrows along the axes of the page, which one browser at a time can drag."""

    # Only the position at release is a goal: an arm that followed the mouse could hit what lies on
    # its path. If a browser disconnects while it drags, the handle returns, and there is no goal.
    # A thread of the server moves it for browsers, and another thread for the owner of the page;
    # the lock keeps each operation whole.
    def __init__(self, server: viser.ViserServer, on_release: Callable[[Vector], None]) -> None:
        """``on_release`` gets the position (3,) [m]."""
        self._server, self._on_release = server, on_release
        # Acquired before any lock of viser, never while one is held.
        self._lock = threading.Lock()
        self._rest = np.zeros(3)
        self._holder: int | None = None
        self._dragged = self._rest
        self._moved_at = -math.inf
        self._handle = self._add(0, visible=False)

    def renew(self, edition: int) -> None:
        """Replace it: messages about the earlier one, and a drag of it, no longer count."""
        with self._lock:
            before, self._holder = self._handle, None
            self._handle = self._add(edition, visible=before.visible)
            before.remove()

    @property
    def is_held(self) -> bool:
        return self._holder is not None and time.monotonic() - self._moved_at < IDLE

    def place(self, position: ArrayLike | None) -> None:
        """Show it at ``position`` (3,) [m] unless a browser holds it; None: hide it."""
        with self._lock:
            if position is None:
                self._holder, self._handle.visible = None, False
                return
            self._rest = np.array(position, np.float64)
            if not self.is_held:
                # A browser that was idle for too long has to start a new drag.
                self._holder = None
                self._show(self._rest)
                self._handle.visible = True

    def _add(self, edition: int, visible: bool) -> viser.TransformControlsHandle:
        handle = self._server.scene.add_transform_controls(
            f'/goal_{edition}',
            scale=0.18,  # about the length of its arrows [m]
            line_width=4.0,
            disable_rotations=True,
            depth_test=False,  # also visible inside the gripper
            position=self._rest,
            visible=visible,
        )
        # A coroutine: viser does not keep the order of other callbacks.
        handle.on_update(self._on_update)
        return handle

    async def _on_update(self, event: viser.TransformControlsEvent) -> None:
        with self._lock:
            if event.target is self._handle:  # viser ends the drag of a handle that was replaced
                self._take(event)

    def _take(self, event: viser.TransformControlsEvent) -> None:
        # viser ends the drag of a disconnected browser like a release.
        is_there = event.client_id in self._server.get_clients()
        position = _vector(event.target.position)
        # viser stores what a browser sends, and sends it to all others; with an invalid
        # orientation the handle would vanish.
        self._handle._impl.wxyz = np.array((1.0, 0.0, 0.0, 0.0))
        if position is None:
            self._handle._impl.position = self._rest.copy()
        is_free = not self.is_held or self._holder == event.client_id
        if event.phase == 'start' and is_there and is_free and self._handle.visible:
            self._holder, self._dragged = event.client_id, self._rest
            self._moved_at = time.monotonic()
            return
        if event.client_id != self._holder or event.client_id is None:
            # Another browser holds it: it stays at the position of that one.
            self._show(self._dragged if self.is_held else self._rest)
            return
        if not is_there or position is None:
            self._holder = None
            self._show(self._rest)
        elif event.phase == 'update':
            self._dragged, self._moved_at = position, time.monotonic()
        elif event.phase == 'end':
            self._holder = None
            if np.abs(self._dragged - self._rest).max() > CLICK and self._handle.visible:
                self._on_release(self._dragged)
            else:
                self._show(self._rest)

    def _show(self, position: Vector) -> None:
        self._handle.position = position.copy()


def _set(handle: Any, name: str, value: bool) -> None:
    """Set an attribute only if it changes: viser sends every assignment to the browsers."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)


def _line_html(line: Line) -> str:
    colour = {None: PLAIN, True: GOOD, False: BAD}[line.is_good]
    name, text = html.escape(line.name), html.escape(line.text)
    return (
        f'<div style="display:flex;gap:0.6em;font-size:0.85em;padding:0.15em 0.9em">'
        f'<b style="min-width:5em">{name}</b>'
        f'<span data-line="{name}" style="color:{colour}">{text}</span></div>'
    )


def _vector(value: object) -> Vector | None:
    """Return a position (3,) from a browser; None if it is invalid."""
    try:
        position = np.array(value, np.float64)
    except (TypeError, ValueError):
        return None
    return position if position.shape == (3,) and np.isfinite(position).all() else None
