"""What the folder of a run has to show, read again when the run goes on."""

from __future__ import annotations

from collections.abc import Callable
import csv
from pathlib import Path
from typing import Generic, TypeVar

from mher_ros.errors import MherError
from mher_ros.interface import TaskInterface
from mher_ros.learning.curve import COLUMNS, curve_of
from mher_ros.learning.episodes import EPISODES, read_episodes, RecordedEpisode
from mher_ros.learning.run_folder import load_config, PROGRESS
from mher_ros.simulation.task_plant import TaskPlant
from mher_ros.tasks import make
import numpy as np
from numpy.typing import NDArray

__all__ = ['read_curve', 'RecordError', 'RunRecord']

Content = TypeVar('Content')


class RecordError(MherError, ValueError):
    """A file of a run that cannot be shown; the message says which and why."""


class RunRecord:
    """A run's learning curve, its recorded episodes, and the arm that they are of."""

    def __init__(self, folder: Path) -> None:
        """Read the folder; MherError unless it holds a run whose files are whole."""
        config = load_config(folder)
        self.name = folder.resolve().name
        self.interface: TaskInterface = make(config.task_name, config.task).interface
        arm = TaskPlant(config.task_name, config.task)
        self.urdf = arm.description(config.task_name)
        self.rest = dict(zip(arm.joint_names, arm.joint_state()[0].tolist(), strict=True))
        """Where the joints are before anything is recorded [rad or m]."""
        self._curve = _Watched(folder / PROGRESS, read_curve, np.empty((0, 3)))
        nothing: list[RecordedEpisode] = []
        self._episodes = _Watched(folder / EPISODES, self._read_episodes, nothing)
        self.refresh()
        if self.trouble:
            raise RecordError(self.trouble)

    @property
    def curve(self) -> NDArray[np.float64]:
        """Rows (n, 3): environment steps, success rate, final error in the goal's unit."""
        return self._curve.content

    @property
    def episodes(self) -> list[RecordedEpisode]:
        """The first one first; none: the run keeps none, or has just begun."""
        return self._episodes.content

    @property
    def trouble(self) -> str:
        """What is wrong with files that cannot be read; what was read of them before stays."""
        return '; '.join(file.trouble for file in (self._curve, self._episodes) if file.trouble)

    def refresh(self) -> bool:
        """Read again what has changed; returns whether there is anything new to show."""
        # All of them, not only those up to the first that has changed.
        return any([self._curve.refresh(), self._episodes.refresh()])

    def _read_episodes(self, path: Path) -> list[RecordedEpisode]:
        episodes = read_episodes(path)
        expected = len(self.interface.goal)
        if episodes and episodes[0].goal.size != expected:
            raise RecordError(
                f'{path} should hold goals of {self.interface.task}, which have {expected} '
                f'entries; they have {episodes[0].goal.size}'
            )
        return episodes


def read_curve(path: Path) -> NDArray[np.float64]:
    """Return the rows (n, 3) of a run's progress.csv; rows without a figure are left out."""
    try:
        with path.open(newline='') as file:
            reader = csv.DictReader(file)
            missing = set(COLUMNS) - set(reader.fieldnames or ())
            if missing:
                raise ValueError(f'there is no column {", ".join(sorted(missing))}')
            return curve_of(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f'{path} is no table of a run that can be used: {error}') from error


class _Watched(Generic[Content]):
    """The content of a file that may appear and change; what was read last, if it is removed."""

    def __init__(self, path: Path, read: Callable[[Path], Content], nothing: Content) -> None:
        self._path, self._read = path, read
        self._seen: tuple[int, int, int] | None = None
        self.content = nothing
        self.trouble = ''

    def refresh(self) -> bool:
        """Read the file if it has changed; returns whether content or trouble is new."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            return self._fail(f'cannot read {self._path}: {error.strerror}')
        seen = status.st_mtime_ns, status.st_size, status.st_ino
        if seen == self._seen:
            return False
        # Before it is read: what changes meanwhile is read again.
        self._seen = seen
        try:
            self.content, self.trouble = self._read(self._path), ''
        except MherError as error:
            return self._fail(str(error))
        return True

    def _fail(self, text: str) -> bool:
        before, self.trouble = self.trouble, text
        return before != text
