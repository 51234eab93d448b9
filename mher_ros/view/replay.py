"""The page of a run that was recorded: its curves, and its episodes to play."""

from __future__ import annotations

from typing import Any

from mher_ros.interface import TaskInterface
from mher_ros.learning.episodes import RecordedEpisode
from mher_ros.view import palette
from mher_ros.view.arm_scene import ArmScene
from mher_ros.view.curves import Curves
from mher_ros.view.drawings import Drawing, Drawings
from mher_ros.view.edges import box_edges
from mher_ros.view.playback import Playback
from mher_ros.view.run_record import RunRecord
from mher_ros.view.stage import FROM_THE_SIDE, look_at, set_stage
import numpy as np
from numpy.typing import ArrayLike, NDArray
import viser

__all__ = ['episode_drawings', 'episode_text', 'record_text', 'ReplayPage', 'workspace_drawing']

Vectors = NDArray[np.float64]

LINE_WIDTH, POINT_SIZE = 0.01, 0.02
"""Of the longest side of the workspace."""
REREAD = 1.0
"""Time between two looks at the folder [s]."""
SPEEDS = ('0.25', '0.5', '1', '2', '5', '10')
PLAY, PAUSE = 'Play', 'Pause'


class ReplayPage:
    """
    Shows a run; everything is done in ``tick``, by the thread that calls it.

    What people do in a browser is only found there by the values of sliders and of a counter.
    """

    def __init__(self, server: viser.ViserServer, record: RunRecord) -> None:
        self._record, self._playback = record, Playback(record.interface.control_period)
        self._reread_at = self._now = -np.inf
        self._presses = self._presses_done = 0
        self._shown: tuple[int, int] | None = None
        self._told = 1, 0
        gui = server.gui
        set_stage(server)
        self._arm = ArmScene(server, record.urdf)
        self._arm.move(record.rest)
        self._drawings = Drawings(server)
        self._drawings.show('workspace', workspace_drawing(record.interface))
        _look(server, record.interface, self._arm.centre())
        self._said = gui.add_markdown('')
        self._episode_text = gui.add_markdown('')
        # Any: mypy does not see that the values of viser's sliders can be set.
        self._row: Any = gui.add_slider('episode', 1, 1, 1, 1, hint='of those that were kept')
        self._step: Any = gui.add_slider('step', 0, 0, 1, 0)
        self._button = gui.add_button(PLAY, icon=viser.Icon.PLAYER_PLAY)
        self._button.on_click(self._press)
        self._speed = gui.add_dropdown('speed', SPEEDS, initial_value='1')
        self._curves = Curves(server)
        self._take()

    def tick(self, now: float) -> None:
        """Do what there is to do at the time ``now`` [s]."""
        passed, self._now = now - self._now, now
        if now >= self._reread_at + REREAD:
            self._reread_at = now
            if self._record.refresh():
                self._take()
        self._listen()
        if np.isfinite(passed):
            self._playback.advance(passed)
        self._show()

    async def _press(self, _: object) -> None:
        self._presses += 1

    def _listen(self) -> None:
        """Take up what people have done since the last time."""
        playback = self._playback
        asked = self._row.value, self._step.value
        if asked != self._told:
            self._told = asked
            playback.go_to(asked[0] - 1, asked[1])
        if self._speed.value in SPEEDS:
            playback.speed = float(self._speed.value)
        while self._presses_done < self._presses:
            self._presses_done += 1
            playback.toggle()

    def _take(self) -> None:
        """Show what was read."""
        record, playback = self._record, self._playback
        self._curves.show(record.curve, record.interface.goal[0].unit)
        playback.take(record.episodes)
        self._said.content = record_text(record)
        for handle in (self._row, self._step, self._button, self._speed, self._episode_text):
            handle.visible = bool(record.episodes)
        self._row.max, self._step.max = playback.last_row + 1, playback.last_step
        self._shown = None

    def _show(self) -> None:
        playback = self._playback
        label = PAUSE if playback.is_playing else PLAY
        if self._button.label != label:
            self._button.label = label
            self._button.icon = (
                viser.Icon.PLAYER_PAUSE if playback.is_playing else viser.Icon.PLAYER_PLAY
            )
        episode, place = playback.episode, (playback.row, playback.step)
        if episode is None:
            return
        told = place[0] + 1, place[1]
        if told != self._told:
            self._row.value, self._step.value = self._told = told
        if place == self._shown:
            return
        self._shown = place
        positions = episode.joints[place[1]].tolist()
        self._arm.move(dict(zip(episode.joint_names, positions, strict=True)))
        interface = self._record.interface
        for name, drawing in episode_drawings(interface, episode, place[1]).items():
            self._drawings.show(name, drawing)
        text = episode_text(interface, episode)
        if self._episode_text.content != text:
            self._episode_text.content = text


def episode_drawings(
    interface: TaskInterface, episode: RecordedEpisode, step: int
) -> dict[str, Drawing]:
    """
    Return what is drawn besides the arm after ``step`` steps, by name.

    The goal is a ball with the size of success, green while the tool is there. Virtual goals lie
    around it as they lay around the goals that they replaced.
    """
    side = _longest_side(interface)
    # Of a flat task what is small lies on the floor, not half in it.
    height = POINT_SIZE * side / 2.0
    is_there = interface.reward(episode.achieved_goals[step], episode.goal) == 0.0
    return {
        'goal': Drawing(
            'ball',
            _points([episode.goal]),
            palette.REACHED if is_there else palette.AHEAD,
            interface.success_threshold,
        ),
        'trail': Drawing(
            'strip',
            _points(episode.achieved_goals[: step + 1], height),
            palette.TRAIL,
            LINE_WIDTH * side,
        ),
        'virtual_goals': Drawing(
            'cloud',
            _points(episode.goal + episode.virtual_offsets, height),
            palette.VIRTUAL,
            POINT_SIZE * side,
        ),
    }


def workspace_drawing(interface: TaskInterface) -> Drawing:
    """Return the edges of the box that goals are drawn from."""
    edges = _points(box_edges(interface.goal_low, interface.goal_high))
    width = LINE_WIDTH / 2.0 * _longest_side(interface)
    return Drawing('lines', edges, palette.WORKSPACE, width)


def episode_text(interface: TaskInterface, episode: RecordedEpisode) -> str:
    """Say in Markdown what became of an episode."""
    error = float(interface.distance(episode.achieved_goals[-1], episode.goal))
    shown = f'{1000.0 * error:.1f} mm' if interface.goal[0].unit == 'm' else f'{error:.3f}'
    end = 'ends at its goal' if episode.success else 'misses its goal'
    made = len(episode.virtual_offsets)
    return (
        f'**Episode {episode.index + 1}**, after {episode.env_steps} steps, **{end}**\n\n'
        f'final error {shown}' + (f', {made} virtual goals' if made else '')
    )


def record_text(record: RunRecord) -> str:
    """Say in Markdown what run it is, and what is missing."""
    lines = [f'`{record.name}` ({record.interface.task})']
    if not len(record.curve):
        lines.append('It has not been evaluated yet.')
    if not record.episodes:
        lines.append('No episodes were recorded: there are only curves.')
    if record.trouble:
        lines.append(f'`{record.trouble}`')
    return '\n\n'.join(lines)


def _points(positions: ArrayLike, height: float = 0.0) -> Vectors:
    """Return positions (n, m) as points (n, 3), those of two entries at ``height``."""
    found = np.asarray(positions, np.float64)
    missing = np.full((len(found), 3 - found.shape[1]), height)
    return np.concatenate((found, missing), axis=1)


def _longest_side(interface: TaskInterface) -> float:
    return float(np.max(np.subtract(interface.goal_high, interface.goal_low)))


def _look(server: viser.ViserServer, interface: TaskInterface, arm: Vectors) -> None:
    """Set where a browser that comes looks from: at an arm from the side, flat ones from above."""
    low, high = _points([interface.goal_low, interface.goal_high])
    centre, away = arm, np.array(FROM_THE_SIDE)
    if len(interface.goal) == 2:
        centre = (low + high) / 2.0
        # Not quite from above, where there is no telling which way is up.
        away = _longest_side(interface) * np.array([0.0, -0.01, 1.2])
    look_at(server, centre, away)
