"""The page of a recorded run: its learning curves, and a player of its episodes."""

from collections.abc import Sequence
from typing import Any

from mher_ros.interface import TaskInterface, Vector
from mher_ros.learning.run.episodes import RecordedEpisode
from mher_ros.view.drawings import box_edges, Colour, Drawing, Drawings
from mher_ros.view.obstacle_drawings import obstacle_drawings
from mher_ros.view.run_record import RunRecord
from mher_ros.view.scene import ArmScene, Curves, FROM_THE_SIDE, look_at, set_stage
import numpy as np
from numpy.typing import ArrayLike
import viser

LINE_WIDTH, POINT_SIZE = 0.01, 0.02  # relative to the longest side of the workspace
REREAD = 1.0  # time between two checks of the files [s]
SPEEDS = ('0.25', '0.5', '1', '2', '5', '10')
PLAY, PAUSE = ('Play', viser.Icon.PLAYER_PLAY), ('Pause', viser.Icon.PLAYER_PAUSE)


class ReplayPage:
    """Shows a run; ``tick`` does all work, also for what people did in a browser."""

    def __init__(self, server: viser.ViserServer, record: RunRecord) -> None:
        self._record, self._playback = record, Playback(record.interface.control_period)
        self._reread_at = self._now = -np.inf
        self._presses = self._presses_done = 0
        self._shown: tuple[int, int] | None = None
        self._sliders = 1, 0
        gui = server.gui
        set_stage(server)
        self._arm = ArmScene(server, record.urdf)
        self._arm.move(record.rest)
        self._drawings = Drawings(server)
        self._drawings.show('workspace', workspace_drawing(record.interface))
        for index, drawing in enumerate(obstacle_drawings(record.scene)):
            self._drawings.show(f'obstacle_{index}', drawing)
        _look(server, record.interface, self._arm.centre())
        self._run_text = gui.add_markdown('')
        self._episode_text = gui.add_markdown('')
        # Any: mypy does not see that the values of viser's sliders can be set.
        self._row: Any = gui.add_slider('episode', 1, 1, 1, 1, hint='of the recorded ones')
        self._step: Any = gui.add_slider('step', 0, 0, 1, 0)
        self._button = gui.add_button(PLAY[0], icon=PLAY[1])
        self._button.on_click(self._press)
        self._speed = gui.add_dropdown('speed', SPEEDS, initial_value='1')
        self._curves = Curves(server)
        self._take()

    def tick(self, now: float) -> None:
        """Update the page at the time ``now`` [s]."""
        passed, self._now = now - self._now, now
        if now >= self._reread_at + REREAD:
            self._reread_at = now
            if self._record.refresh():
                self._take()
        self._read_controls()
        if np.isfinite(passed):
            self._playback.advance(passed)
        self._show()

    async def _press(self, _: object) -> None:
        self._presses += 1

    def _read_controls(self) -> None:
        playback = self._playback
        sliders = self._row.value, self._step.value
        if sliders != self._sliders:
            self._sliders = sliders
            playback.go_to(sliders[0] - 1, sliders[1])
        if self._speed.value in SPEEDS:
            playback.speed = float(self._speed.value)
        while self._presses_done < self._presses:
            self._presses_done += 1
            playback.toggle()

    def _take(self) -> None:
        record, playback = self._record, self._playback
        self._curves.show(record.curve, record.interface.goal[0].unit)
        playback.take(record.episodes)
        self._run_text.content = record_text(record)
        for handle in (self._row, self._step, self._button, self._speed, self._episode_text):
            handle.visible = bool(record.episodes)
        self._row.max, self._step.max = playback.last_row + 1, playback.last_step
        self._shown = None

    def _show(self) -> None:
        playback = self._playback
        label, icon = PAUSE if playback.is_playing else PLAY
        if self._button.label != label:
            self._button.label, self._button.icon = label, icon
        episode, place = playback.episode, (playback.row, playback.step)
        if episode is None:
            return
        sliders = place[0] + 1, place[1]
        if sliders != self._sliders:
            self._row.value, self._step.value = self._sliders = sliders
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


class Playback:
    """The shown episode and step; while playing, one episode follows the other."""

    def __init__(self, period: float) -> None:
        """``period`` is the duration of a step [s]."""
        self._period = period
        self._episodes: Sequence[RecordedEpisode] = ()
        self.row = 0  # index among the recorded episodes
        self._steps = 0.0
        self.is_playing = False
        self.speed = 1.0  # 1: real time

    @property
    def episode(self) -> RecordedEpisode | None:
        return self._episodes[self.row] if self._episodes else None

    @property
    def step(self) -> int:
        return min(int(self._steps), self.last_step)

    @property
    def last_step(self) -> int:
        return 0 if self.episode is None else len(self.episode.joints) - 1

    @property
    def last_row(self) -> int:
        return max(0, len(self._episodes) - 1)

    def take(self, episodes: Sequence[RecordedEpisode]) -> None:
        """Take a new list; stay at the same episode or one before it, or at the end."""
        shown = self.episode
        follows = not self.is_playing and self._is_at_end()
        self._episodes = episodes
        if shown is None or follows:
            self.go_to(self.last_row, np.inf)
            return
        earlier = [row for row, it in enumerate(episodes) if it.index <= shown.index]
        self.go_to(earlier[-1] if earlier else 0, self._steps)

    def go_to(self, row: int, step: float) -> None:
        """Show the step of a recorded episode that is nearest to this one."""
        self.row = min(max(0, row), self.last_row)
        self._steps = min(max(0.0, step), float(self.last_step))

    def toggle(self) -> None:
        """Play, from the beginning of the episode if it is at the end, or pause."""
        if not self.is_playing and self._is_at_end():
            self._steps = 0.0
        self.is_playing = not self.is_playing and self.episode is not None

    def advance(self, seconds: float) -> None:
        if not self.is_playing:
            return
        steps = self._steps + seconds * self.speed / self._period
        # The last step is shown for as long as any other step.
        if steps < self.last_step + 1:
            self._steps = steps
        elif self.row < self.last_row:
            self.go_to(self.row + 1, 0.0)
        else:
            self.go_to(self.row, np.inf)
            self.is_playing = False

    def _is_at_end(self) -> bool:
        return self.row == self.last_row and self.step == self.last_step


def episode_drawings(
    interface: TaskInterface, episode: RecordedEpisode, step: int
) -> dict[str, Drawing]:
    """Return the drawings after ``step`` steps, by name."""
    goal, near, count = episode.goal, interface.success_threshold, interface.position_size
    is_there = interface.reward(episode.achieved_goals[step], goal) == 0.0
    colour = Colour.REACHED if is_there else Colour.AHEAD
    size, width = (share * _longest_side(interface) for share in (POINT_SIZE, LINE_WIDTH))
    # In a planar task, small shapes lie on the floor.
    trail = _points(episode.achieved_goals[: step + 1, :count], size / 2.0)
    made = _points((goal + episode.goal_offsets)[:, :count], size / 2.0)
    return {
        'goal': Drawing('ball', _points([goal[:count]]), colour, near),
        'trail': Drawing('strip', trail, Colour.TRAIL, width),
        'virtual_goals': Drawing('cloud', made, Colour.VIRTUAL, size),
    }


def workspace_drawing(interface: TaskInterface) -> Drawing:
    """Return the edges of the box from which goals are drawn."""
    edges = _points(box_edges(*interface.position_box))
    width = LINE_WIDTH / 2.0 * _longest_side(interface)
    return Drawing('lines', edges, Colour.WORKSPACE, width)


def episode_text(interface: TaskInterface, episode: RecordedEpisode) -> str:
    """Return the result of an episode as Markdown."""
    error = float(interface.position_error(episode.achieved_goals[-1], episode.goal))
    shown = f'{1000.0 * error:.1f} mm' if interface.goal[0].unit == 'm' else f'{error:.3f}'
    end = 'ends at its goal' if episode.success else 'misses its goal'
    made = len(episode.goal_offsets)
    return (
        f'**Episode {episode.index + 1}**, after {episode.env_steps} steps, **{end}**\n\n'
        f'final error {shown}' + (f', {made} virtual goals' if made else '')
    )


def record_text(record: RunRecord) -> str:
    """Return the name of the run and what is missing, as Markdown."""
    lines = [f'`{record.name}` ({record.interface.task})']
    if not len(record.curve):
        lines.append('Not evaluated yet.')
    if not record.episodes:
        lines.append('No recorded episodes: only curves are shown.')
    if record.problem:
        lines.append(f'`{record.problem}`')
    return '\n\n'.join(lines)


def _points(positions: ArrayLike, height: float = 0.0) -> Vector:
    """Return positions (n, m) as points (n, 3); planar ones get this ``height``."""
    found = np.asarray(positions, np.float64)
    missing = np.full((len(found), 3 - found.shape[1]), height)
    return np.concatenate((found, missing), axis=1)


def _longest_side(interface: TaskInterface) -> float:
    low, high = interface.position_box
    return float(np.max(np.subtract(high, low)))


def _look(server: viser.ViserServer, interface: TaskInterface, arm: Vector) -> None:
    """Set the cameras: an arm is seen from the side, a planar task from above."""
    low, high = _points(interface.position_box)
    centre, away = arm, np.array(FROM_THE_SIDE)
    if len(interface.goal) == 2:
        centre = (low + high) / 2.0
        # Not exactly from above, where the upward direction is undefined.
        away = _longest_side(interface) * np.array([0.0, -0.01, 1.2])
    look_at(server, centre, away)
