"""How far an experiment is: one picture of all its runs, or a line for each."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import sys
import time
from typing import Any

from mher_ros.experiments.jobs import Failure, Job, Lost, News, Started

__all__ = ['GridView', 'LineView', 'make_view', 'time_left']

Cell = tuple[str, str]
"""Task and system."""


class LineView:
    """A line for each run that ends, or is lost on the way."""

    def __init__(self, jobs: Sequence[Job], parallel: int) -> None:
        self._total, self._parallel, self._ended = len(jobs), parallel, 0

    def hear(self, job: Job, news: News) -> None:
        """Tell it."""
        if isinstance(news, Started):
            return
        if isinstance(news, Lost):
            self._say(f'{job}: {news.reason}; begun again')
            return
        self._ended += 1
        failed = f' failed: {news.reason}' if isinstance(news, Failure) else ''
        self._say(f'{self._ended:>4}/{self._total}  {job}{failed}')

    def close(self) -> None:
        """Finish."""

    def _say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class GridView(LineView):
    """Systems by tasks, redrawn in place; what goes wrong scrolls by above it."""

    def __init__(self, jobs: Sequence[Job], parallel: int, console: Any = None) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(jobs, parallel)
        self._all = collections.Counter(_cell(job) for job in jobs)
        self._done: collections.Counter[Cell] = collections.Counter()
        self._failed: collections.Counter[Cell] = collections.Counter()
        self._running: dict[Job, float] = {}
        self._seconds: dict[Cell, list[float]] = {}
        self._began = time.monotonic()
        self._console = console or Console(stderr=True)
        self._live = Live(
            console=self._console, get_renderable=self._draw, refresh_per_second=2, transient=False
        )
        self._live.start()

    def hear(self, job: Job, news: News) -> None:
        """Take it into the picture."""
        if isinstance(news, Started):
            self._running[job] = time.monotonic()
            return
        started = self._running.pop(job, None)
        if isinstance(news, Lost):
            self._say(f'{job}: {news.reason}; begun again')
        elif isinstance(news, Failure):
            self._failed[_cell(job)] += 1
            self._say(f'{job} failed: {news.reason}')
        else:
            self._done[_cell(job)] += 1
            if started is not None:
                self._seconds.setdefault(_cell(job), []).append(news['seconds'])

    def close(self) -> None:
        """Leave the picture as it is."""
        self._live.stop()

    def _say(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _draw(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        tasks = list(dict.fromkeys(task for task, _ in self._all))
        running = collections.Counter(map(_cell, list(self._running)))
        table = Table()
        table.add_column('')
        for task in tasks:
            table.add_column(task, justify='right')
        for system in dict.fromkeys(system for _, system in self._all):
            cells = []
            for task in tasks:
                cell, text = (task, system), Text()
                if cell in self._all:
                    complete = self._done[cell] == self._all[cell]
                    text.append(
                        f'{self._done[cell]}/{self._all[cell]}', 'green' if complete else ''
                    )
                    if running[cell]:
                        text.append(f' {running[cell]} running', 'cyan')
                    if self._failed[cell]:
                        text.append(f' {self._failed[cell]} failed', 'red')
                cells.append(text)
            table.add_row(system, *cells)
        return Group(table, Text(self._summary()))

    def _summary(self) -> str:
        done, failed = self._done.total(), self._failed.total()
        elapsed = time.monotonic() - self._began
        text = f'{done} of {self._total} runs done, {_minutes(elapsed)} so far'
        unfinished = self._all - self._done - self._failed
        spent = sum(time.monotonic() - began for began in list(self._running.values()))
        left = time_left(unfinished, dict(self._seconds), spent, self._parallel)
        if left is not None:
            text += f', about {_minutes(left)} left'
        return text + (f', {failed} failed' if failed else '')


def time_left(
    unfinished: collections.Counter[Cell],
    seconds: dict[Cell, list[float]],
    spent: float,
    parallel: int,
) -> float | None:
    """
    Return the seconds until all is done, if any run has told how long one takes.

    A run is taken to last as long as those of its task and system, else of its task, else any;
    ``spent`` is what the runs under way have behind them.
    """
    if not unfinished or not seconds:
        return None
    total = -spent
    for (task, system), count in unfinished.items():
        alike = (
            seconds.get((task, system))
            or [value for (other, _), some in seconds.items() if other == task for value in some]
            or [value for some in seconds.values() for value in some]
        )
        total += count * sum(alike) / len(alike)
    return max(0.0, total) / min(parallel, unfinished.total())


def make_view(jobs: Sequence[Job], parallel: int) -> LineView:
    """Return a picture for a person at a terminal, plain lines for anything else."""
    return (GridView if sys.stderr.isatty() else LineView)(jobs, parallel)


def _cell(job: Job) -> Cell:
    return job.variant.task, job.variant.name


def _minutes(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f'{hours}:{minutes:02}:{whole % 60:02}' if hours else f'{minutes}:{whole % 60:02}'
