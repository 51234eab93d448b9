"""Progress of a run: progress.csv, TensorBoard, terminal, learning curve and step rate."""

from collections.abc import Iterable, Mapping, Sequence
import csv
import io
from pathlib import Path
import sys
from typing import Any

from mher_ros.files import write_atomically
import numpy as np
from numpy.typing import NDArray

Row = dict[str, float | int | None]
WALL_TIME = 'wall_seconds'


class Progress:
    """Callbacks of a run; the base class does nothing."""

    trainer: Any = None  # the ``Trainer`` of the run, which sets it

    def resume(self, rows: Sequence[Row]) -> None:
        """Resume a run that has these rows."""

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        """Report the current activity."""

    def row(self, row: Row) -> None:
        """Report an evaluation."""

    def notice(self, text: str) -> None:
        """Report a message for the user."""

    def warning(self, text: str) -> None:
        """Report an error after which the run continues."""
        self.notice(text)

    def close(self) -> None:
        """End the report."""


class CsvProgress(Progress):
    """One row per evaluation; the file is replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Row] = []

    def resume(self, rows: Sequence[Row]) -> None:
        """Remove rows that are later than the checkpoint."""
        self._rows = list(rows)
        self._write()

    def row(self, row: Row) -> None:
        self._rows.append(row)
        self._write()

    def _write(self) -> None:
        if not self._rows:
            return
        text = io.StringIO()
        writer = csv.DictWriter(text, list(self._rows[0]), lineterminator='\n')
        writer.writeheader()
        writer.writerows(self._rows)
        write_atomically(self._path, text.getvalue().encode())


class TensorBoardProgress(Progress):
    """The same values as TensorBoard scalars over environment steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def resume(self, rows: Sequence[Row]) -> None:
        """Remove values that are later than the checkpoint, and write its last row again."""
        self._open(purge_step=int(rows[-1]['env_steps'] or 0) if rows else 0)
        if rows:
            self.row(rows[-1])

    def row(self, row: Row) -> None:
        if self._writer is None:
            self._open(purge_step=None)
        for name, value in row.items():
            if value is not None and name != 'env_steps':
                self._writer.add_scalar(name, value, int(row['env_steps'] or 0))
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def _open(self, purge_step: int | None) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(self._folder, purge_step=purge_step)


class TerminalDisplay(Progress):
    """A heading before the first output, one line per evaluation, and a bar in a terminal."""

    def __init__(self, heading: str, unit: str, total_steps: int) -> None:
        from rich import progress

        self._heading: str | None = heading
        self._unit = unit
        self._bar = progress.Progress(
            progress.TextColumn('{task.description:<12}'),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn('steps, {task.fields[updates]} updates'),
            progress.TimeElapsedColumn(),
            disable=not sys.stdout.isatty(),
        )
        self._task = self._bar.add_task('starting', total=total_steps, updates=0)

    def resume(self, rows: Sequence[Row]) -> None:
        if rows:
            self.notice(f'resumed; last evaluation after {rows[-1]["env_steps"]} steps')

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        self.notice(None)
        self._bar.start()
        self._bar.update(self._task, description=text, completed=env_steps, updates=updates)

    def row(self, row: Row) -> None:
        self.notice(row_text(row, self._unit))

    def notice(self, text: str | None) -> None:
        for line in (self._heading, text):
            if line is not None and self._bar.disable:
                print(line, flush=True)
            elif line is not None:
                self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._heading = None

    def close(self) -> None:
        if not self._bar.disable:  # stop() prints a line end
            self._bar.stop()


def row_text(row: Row, unit: str) -> str:
    """Return one line of text; errors in metres are shown in millimetres."""
    error = float(row['final_error'] or 0.0)
    shown = f'{1000.0 * error:7.1f} mm' if unit == 'm' else f'{error:7.3f}'
    return (
        f'{row["env_steps"]:>7} steps  success {100.0 * float(row["success_rate"] or 0.0):5.1f} %'
        f'  error {shown}  {float(row[WALL_TIME] or 0.0):7.1f} s'
    )


COLUMNS = ('env_steps', 'success_rate', 'final_error')  # of progress.csv


def curve_of(rows: Iterable[Mapping[str, float | str | None]]) -> NDArray[np.float64]:
    """Return the learning curve (n, 3) of ``COLUMNS``, without rows that lack a value."""
    found = [[row[name] for name in COLUMNS] for row in rows]
    numbers = [[np.nan if v in (None, '') else float(v) for v in values] for values in found]
    curve = np.array(numbers, np.float64).reshape(-1, len(COLUMNS))
    return curve[np.isfinite(curve).all(axis=1)]


class Pace:
    """Estimates the remaining time from the mean rate of steps, including evaluations."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []  # the first one and the latest one

    def note(self, steps: int, now: float) -> None:
        if not self._points or steps > self._points[-1][0]:
            self._points = [*self._points[:1], (steps, now)]

    def seconds_until(self, steps: int, now: float) -> float | None:
        """Return the estimated time until ``steps`` are done [s]; None if unknown."""
        if len(self._points) < 2:
            return None
        (first, start), (last, end) = self._points
        return max(0.0, (steps - last) * (end - start) / (last - first) - (now - end))
