"""Where figures go while a run learns: progress.csv, TensorBoard, the terminal."""

from __future__ import annotations

from collections.abc import Sequence
import csv
import io
from pathlib import Path
import sys
from typing import Any

from mher_ros.files import write_atomically

__all__ = [
    'CsvProgress',
    'PlainDisplay',
    'Progress',
    'RichDisplay',
    'TensorBoardProgress',
    'terminal_display',
]

Row = dict[str, float | int | None]
WALL_TIME = 'wall_seconds'


class Progress:
    """Hears of a run; this one keeps it to itself."""

    def resume(self, rows: Sequence[Row]) -> None:
        """Take up a run that already has these rows."""

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        """Learn what is going on between two rows."""

    def row(self, row: Row) -> None:
        """Learn the figures of one evaluation."""

    def notice(self, text: str) -> None:
        """Learn of something that people should know."""

    def warning(self, text: str) -> None:
        """Learn of something that went wrong and was made up for."""
        self.notice(text)

    def close(self) -> None:
        """Finish."""


class CsvProgress(Progress):
    """One row an evaluation, the file whole at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: list[Row] = []

    def resume(self, rows: Sequence[Row]) -> None:
        """Forget rows after the checkpoint: they will come again."""
        self._rows = list(rows)
        self._write()

    def row(self, row: Row) -> None:
        """Add a row."""
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
    """The same figures as scalars over environment steps."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writer: Any = None

    def resume(self, rows: Sequence[Row]) -> None:
        """Hide what was written after the checkpoint, and write its last row again."""
        self._open(purge_step=int(rows[-1]['env_steps'] or 0) if rows else 0)
        if rows:
            self.row(rows[-1])

    def row(self, row: Row) -> None:
        """Write every figure of the row."""
        if self._writer is None:
            self._open(purge_step=None)
        for name, value in row.items():
            if value is not None and name != 'env_steps':
                self._writer.add_scalar(name, value, int(row['env_steps'] or 0))
        self._writer.flush()

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()

    def _open(self, purge_step: int | None) -> None:
        from torch.utils.tensorboard.writer import SummaryWriter

        self._writer = SummaryWriter(self._folder, purge_step=purge_step)


class PlainDisplay(Progress):
    """A heading once there is something to say, then a line an evaluation."""

    def __init__(self, heading: str, unit: str) -> None:
        self._heading: str | None = heading
        self._unit = unit

    def resume(self, rows: Sequence[Row]) -> None:
        """Say where the run goes on."""
        if rows:
            self._show(f'going on after {rows[-1]["env_steps"]} steps')

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        """Say what run this is, if that has not been said."""
        self._show(None)

    def row(self, row: Row) -> None:
        """Print the figures."""
        self._show(row_text(row, self._unit))

    def notice(self, text: str) -> None:
        """Print it."""
        self._show(text)

    def _show(self, text: str | None) -> None:
        for line in (self._heading, text):
            if line is not None:
                self._print(line)
        self._heading = None

    def _print(self, line: str) -> None:
        print(line, flush=True)


class RichDisplay(PlainDisplay):
    """The same lines above a progress bar over environment steps."""

    def __init__(self, heading: str, unit: str, total_steps: int) -> None:
        from rich import progress

        super().__init__(heading, unit)
        self._bar = progress.Progress(
            progress.TextColumn('{task.description:<12}'),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn('steps, {task.fields[updates]} updates'),
            progress.TimeElapsedColumn(),
        )
        self._task = self._bar.add_task('starting', total=total_steps, updates=0)

    def activity(self, text: str, env_steps: int, updates: int) -> None:
        """Move the bar, which is shown from now on."""
        super().activity(text, env_steps, updates)
        self._bar.start()
        self._bar.update(self._task, description=text, completed=env_steps, updates=updates)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()

    def _print(self, line: str) -> None:
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)


def terminal_display(heading: str, unit: str, total_steps: int) -> Progress:
    """Return a bar for a person at a terminal, plain lines for anything else."""
    if sys.stdout.isatty():
        return RichDisplay(heading, unit, total_steps)
    return PlainDisplay(heading, unit)


def row_text(row: Row, unit: str) -> str:
    """Return one line for people; errors in metres are given in millimetres."""
    error = float(row['final_error'] or 0.0)
    shown = f'{1000.0 * error:7.1f} mm' if unit == 'm' else f'{error:7.3f}'
    return (
        f'{row["env_steps"]:>7} steps  success {100.0 * float(row["success_rate"] or 0.0):5.1f} %'
        f'  error {shown}  {float(row[WALL_TIME] or 0.0):7.1f} s'
    )
