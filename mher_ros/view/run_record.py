"""The files of a run that a page shows; they are read again when the run continues."""

from collections.abc import Callable
import csv
from pathlib import Path
from typing import Generic, TypeVar

from mher_ros.errors import MherError
from mher_ros.files import EPISODES, PROGRESS
from mher_ros.interface import TaskInterface, Vector
from mher_ros.learning.config import load_config
from mher_ros.learning.run.episodes import read_episodes, RecordedEpisode
from mher_ros.learning.run.progress import COLUMNS, curve_of
from mher_ros.simulation.plant import Plant, TaskPlant
from mher_ros.simulation.reach import Reach
from mher_ros.simulation.simulated_robot import simulated_robot
from mher_ros.tasks import make
import numpy as np

Content = TypeVar('Content')


class RecordError(MherError, ValueError):
    """A file of a run that cannot be read; the message has its path and the reason."""


class RunRecord:
    """The learning curve of a run, its recorded episodes, and its arm."""

    def __init__(self, folder: Path) -> None:
        """Read the folder; MherError unless it holds a run whose files can be read."""
        config = load_config(folder)
        self.name = folder.resolve().name
        task = make(config.task_name, config.task)
        self.interface: TaskInterface = task.interface
        arm: Plant = (
            simulated_robot(task.robot)
            if isinstance(task, Reach)
            else TaskPlant(config.task_name, config.task)
        )
        self.urdf = arm.description(config.task_name)
        self.scene = task.arm.scene if isinstance(task, Reach) else ()
        """Obstacles of the robot file that the safety filter kept the arm away from."""
        self.rest = dict(zip(arm.joint_names, arm.joint_state()[0].tolist(), strict=True))
        """Joint positions before the first episode [rad or m]."""
        self._curve = _Watched(folder / PROGRESS, read_curve, np.empty((0, 3)))
        none: list[RecordedEpisode] = []
        self._episodes = _Watched(folder / EPISODES, self._read_episodes, none)
        self.refresh()
        if self.problem:
            raise RecordError(self.problem)

    @property
    def curve(self) -> Vector:
        """Rows (n, 3): environment steps, success rate, final error in the goal's unit."""
        return self._curve.content

    @property
    def episodes(self) -> list[RecordedEpisode]:
        """In order; empty if the run records none, or has just started."""
        return self._episodes.content

    @property
    def problem(self) -> str:
        """Reasons why files cannot be read; their last content stays."""
        return '; '.join(file.problem for file in (self._curve, self._episodes) if file.problem)

    def refresh(self) -> bool:
        """Read changed files again; return whether there is anything new to show."""
        # A list: both are refreshed, even if the first has changed.
        return any([self._curve.refresh(), self._episodes.refresh()])

    def _read_episodes(self, path: Path) -> list[RecordedEpisode]:
        episodes = read_episodes(path)
        expected = len(self.interface.goal)
        if episodes and episodes[0].goal.size != expected:
            raise RecordError(
                f'{path}: expected goals of {self.interface.task} with {expected} entries, '
                f'got {episodes[0].goal.size}'
            )
        return episodes


def read_curve(path: Path) -> Vector:
    """Return the rows (n, 3) of a run's progress.csv; incomplete rows are left out."""
    try:
        with path.open(newline='') as file:
            reader = csv.DictReader(file)
            missing = set(COLUMNS) - set(reader.fieldnames or ())
            if missing:
                raise ValueError(f'no column {", ".join(sorted(missing))}')
            return curve_of(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise RecordError(f'{path} is not the progress of a run: {error}') from error


class _Watched(Generic[Content]):
    """The content of a file that may appear and change; the last content if it is removed."""

    def __init__(self, path: Path, read: Callable[[Path], Content], initial: Content) -> None:
        self._path, self._read = path, read
        self._seen: tuple[int, int, int] | None = None
        self.content = initial
        self.problem = ''

    def refresh(self) -> bool:
        """Read the file if it has changed; return whether content or problem is new."""
        try:
            status = self._path.stat()
            seen = status.st_mtime_ns, status.st_size, status.st_ino
            if seen == self._seen:
                return False
            # Before reading: a change meanwhile is read next time.
            self._seen = seen
            self.content, self.problem = self._read(self._path), ''
            return True
        except FileNotFoundError:
            return False
        except (OSError, MherError) as error:
            before, self.problem = self.problem, str(error)
            return before != self.problem
