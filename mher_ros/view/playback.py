"""Where in the recorded episodes of a run one looks, and how that moves on while it plays."""

from __future__ import annotations

from collections.abc import Sequence

from mher_ros.learning.episodes import RecordedEpisode
import numpy as np

__all__ = ['Playback']


class Playback:
    """
    An episode and a step of it.

    It begins at the end of the last one. While it plays, one episode follows the other.
    """

    def __init__(self, period: float) -> None:
        """``period`` is the time of a step [s]."""
        self._period = period
        self._episodes: Sequence[RecordedEpisode] = ()
        self.row = 0
        """Which of the recorded episodes."""
        self._steps = 0.0
        self.is_playing = False
        self.speed = 1.0
        """Seconds of the arm's time in one of ours."""

    @property
    def episode(self) -> RecordedEpisode | None:
        """The one that is looked at; None if there are none."""
        return self._episodes[self.row] if self._episodes else None

    @property
    def step(self) -> int:
        """Steps since the episode began."""
        return min(int(self._steps), self.last_step)

    @property
    def last_step(self) -> int:
        """Steps of the episode."""
        return 0 if self.episode is None else len(self.episode.joints) - 1

    @property
    def last_row(self) -> int:
        """The last of the recorded episodes."""
        return max(0, len(self._episodes) - 1)

    def take(self, episodes: Sequence[RecordedEpisode]) -> None:
        """
        Look at the same episode among new ones, or at the one before it if it is not kept.

        Who looks at the end of the last one, without playing, sees each that is added.
        """
        looked_at = self.episode
        follows = not self.is_playing and self._is_at_end()
        self._episodes = episodes
        if looked_at is None or follows:
            self.go_to(self.last_row, np.inf)
            return
        earlier = [row for row, it in enumerate(episodes) if it.index <= looked_at.index]
        self.go_to(earlier[-1] if earlier else 0, self._steps)

    def go_to(self, row: int, step: float) -> None:
        """Look at a step of one of the recorded episodes, or at what comes nearest to it."""
        self.row = min(max(0, row), self.last_row)
        self._steps = min(max(0.0, step), float(self.last_step))

    def toggle(self) -> None:
        """Play, from the beginning of the episode if nothing is left, or stop playing."""
        if not self.is_playing and self._is_at_end():
            self._steps = 0.0
        self.is_playing = not self.is_playing and self.episode is not None

    def advance(self, seconds: float) -> None:
        """Let our time pass."""
        if not self.is_playing:
            return
        steps = self._steps + seconds * self.speed / self._period
        # How it ended is to be seen for as long as any other step.
        if steps < self.last_step + 1:
            self._steps = steps
        elif self.row < self.last_row:
            self.go_to(self.row + 1, 0.0)
        else:
            self.go_to(self.row, np.inf)
            self.is_playing = False

    def _is_at_end(self) -> bool:
        return self.row == self.last_row and self.step == self.last_step
