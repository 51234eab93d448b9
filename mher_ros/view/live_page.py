"""The page of an arm that is there now: what it does, and what people may tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import dataclasses
import enum
import html
import queue
import time
from typing import Any, NamedTuple

from mher_ros.view.admission import STOP_PATH
from mher_ros.view.arm_scene import ArmScene
from mher_ros.view.curves import Curves
from mher_ros.view.drawings import Drawing, Drawings
from mher_ros.view.goal_handle import GoalHandle
from mher_ros.view.stage import FROM_THE_SIDE, look_at, set_stage
import numpy as np
from numpy.typing import ArrayLike, NDArray
import viser

__all__ = ['Button', 'Event', 'Line', 'LivePage']

LONGEST_NOTE = 500
"""Characters of what everybody is told."""
GOOD, BAD, PLAIN = '#2b8a3e', '#c92a2a', '#343a40'


class Button(enum.Enum):
    """What people can ask for, and what is written on it."""

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


# A request of its own, not a message among those of all browsers, which viser takes in turn. Its
# answer is empty, so that the browser stays on the page.
STOP_HTML = f"""
<form method="post" action="{STOP_PATH}" style="padding:0.3em 0.9em">
<button style="width:100%;height:2.4em;border:0;border-radius:4px;background:{BAD};color:white;\
font-weight:600;cursor:pointer">{Button.STOP.value}</button></form>"""


class Event(NamedTuple):
    """Something that a person did in a browser."""

    button: Button | None
    goal: NDArray[np.float64] | None
    """Where the goal was let go (3,) [m], if that is what was done."""
    at: float
    """When, by ``time.monotonic`` [s]."""


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of the page's text."""

    name: str
    text: str
    is_good: bool | None = None
    """Whether to say it in green, in red, or plainly."""


class LivePage:
    """
    Shows an arm and hands on what people do; all but ``events`` belongs to one thread.

    Everything that browsers do ends up in ``events``: they never wait, nor is anything done in
    their name by a thread of the server's. The exceptions are to stop, which is a request of its
    own that ``PageServer`` answers, and to drag the goal, whose handle is locked against it.
    """

    def __init__(self, server: viser.ViserServer) -> None:
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._server = server
        set_stage(server)
        self._arm: ArmScene | None = None
        self._drawings = Drawings(server)
        self._goal = GoalHandle(server, lambda place: self._tell(None, place))
        # Above the text, whose lines come, go and wrap: a button that is aimed at stays in place.
        self._stop = server.gui.add_html(STOP_HTML, visible=False)
        self._buttons = {
            button: self._add_button(button) for button in Button if button is not Button.STOP
        }
        self._text = server.gui.add_html('')
        self._told: tuple[Line, ...] = ()
        self._curves = Curves(server)

    @property
    def frame(self) -> str:
        """Link whose axes are those of the page; empty: no arm is shown."""
        return '' if self._arm is None else self._arm.base

    @property
    def links(self) -> frozenset[str]:
        """Links of the arm; none: no arm is shown."""
        return frozenset() if self._arm is None else self._arm.links

    @property
    def is_empty(self) -> bool:
        """Whether there is an arm of which nothing can be seen."""
        return self._arm is not None and self._arm.is_empty

    @property
    def viewers(self) -> int:
        """How many browsers are connected."""
        return len(self._server.get_clients())

    def show_arm(self, urdf: str, base: str = '') -> None:
        """Draw the arm of a URDF in place of the one before; ArmSceneError if it cannot be."""
        arm = ArmScene(self._server, urdf, base)
        if self._arm is not None:
            self._arm.remove()
        self._arm = arm

    def look_at_arm(self) -> None:
        """Turn everybody's eyes to the arm."""
        if self._arm is not None:
            self.look_at(self._arm.centre())

    def move(self, positions: Mapping[str, float]) -> None:
        """Put the arm's joints, by name, to positions [rad or m]."""
        if self._arm is not None:
            self._arm.move(positions)

    def draw(self, name: str, drawing: Drawing | None) -> None:
        """Draw something in place of what has that name."""
        self._drawings.show(name, drawing)

    def clear(self, prefix: str) -> None:
        """Take away all drawings whose names begin like this."""
        self._drawings.clear(prefix)

    def place_goal(self, position: ArrayLike | None) -> None:
        """Offer the goal's handle at a position (3,) [m]; None: nobody would hear of it."""
        if position is None:
            self._goal.hide()
        else:
            self._goal.place(position)

    def say(self, lines: Sequence[Line]) -> None:
        """Write lines beside the picture."""
        if tuple(lines) != self._told:
            self._told = tuple(lines)
            self._text.content = (
                f'<div style="padding-bottom:0.6em">{"".join(map(_line_html, lines))}</div>'
            )

    def offer(self, buttons: Sequence[Button], useless: Sequence[Button] = ()) -> None:
        """Show these buttons, and no others; those that are ``useless`` now cannot be pressed."""
        if self._stop.visible != (Button.STOP in buttons):
            self._stop.visible = Button.STOP in buttons
        for button, handle in self._buttons.items():
            if handle.visible != (button in buttons):
                handle.visible = button in buttons
            if handle.disabled != (button in useless):
                handle.disabled = button in useless

    def show_curve(self, rows: NDArray[np.float64], unit: str) -> None:
        """Draw rows (n, 3) of steps, success rate and final error in ``unit``."""
        self._curves.show(rows, unit)

    def look_at(self, place: NDArray[np.float64], size: float = 1.0) -> None:
        """Turn everybody's eyes to a place (3,) [m], from so far that ``size`` [m] is seen."""
        look_at(self._server, place, max(1.0, size) * np.array(FROM_THE_SIDE))

    def notify(self, title: str, text: str, is_good: bool = False) -> None:
        """Tell everybody who looks; markup is shown, not obeyed."""
        for client in self._server.get_clients().values():
            client.add_notification(
                title=title,
                body=text[:LONGEST_NOTE],
                auto_close_seconds=8.0,
                color='green' if is_good else 'orange',
            )

    def _add_button(self, button: Button) -> viser.GuiButtonHandle:
        handle = self._server.gui.add_button(button.value, visible=False, **LOOKS[button])

        async def press(_: object) -> None:
            self._tell(button, None)

        handle.on_click(press)
        return handle

    def _tell(self, button: Button | None, goal: NDArray[np.float64] | None) -> None:
        self.events.put(Event(button, goal, time.monotonic()))


def _line_html(line: Line) -> str:
    colour = {None: PLAIN, True: GOOD, False: BAD}[line.is_good]
    name, text = html.escape(line.name), html.escape(line.text)
    return (
        f'<div style="display:flex;gap:0.6em;font-size:0.85em;padding:0.15em 0.9em">'
        f'<b style="min-width:5em">{name}</b>'
        f'<span data-line="{name}" style="color:{colour}">{text}</span></div>'
    )
