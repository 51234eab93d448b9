"""Jobs over processes of this machine."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import contextlib
import multiprocessing
from multiprocessing.connection import Connection, wait
import os
import signal
import threading
from typing import Any

from mher_ros.experiments.jobs import (
    attempt,
    code_digest,
    Failure,
    Job,
    Lost,
    News,
    RETRIES,
    Started,
    Telling,
)

__all__ = ['cores', 'run_local']


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def run_local(jobs: Sequence[Job], processes: int | None = None) -> Telling:
    """
    Do the jobs in their order, as many at once as there are cores, and tell what comes of them.

    A process that is killed costs only the job it was at, which is begun again. However this one
    ends, none of them is left behind.
    """
    waiting = collections.deque(jobs)
    losses: collections.Counter[Job] = collections.Counter()
    with contextlib.ExitStack() as end:
        idle: list[_Worker] = []
        busy: dict[Connection, _Worker] = {}
        for _ in range(min(processes or cores(), len(waiting))):
            idle.append(end.enter_context(_Worker()))
        while waiting or busy:
            while waiting and idle:
                worker = idle.pop()
                job = waiting.popleft()
                busy[worker.pipe] = worker
                worker.begin(job)
                yield job, Started()
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker = busy.pop(pipe)
                job = worker.job
                news = worker.take()
                if isinstance(news, Lost):
                    idle.append(end.enter_context(_Worker()))
                    losses[job] += 1
                    if losses[job] > RETRIES:
                        news = Failure(f'{news.reason}, {losses[job]} times')
                    else:
                        waiting.appendleft(job)
                else:
                    idle.append(worker)
                yield job, news


class _Worker:
    """A process that does one job after the other."""

    job: Job

    def __init__(self) -> None:
        context = multiprocessing.get_context('spawn')
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        # The end of the process then is the end of what the pipe has to say.
        theirs.close()

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def begin(self, job: Job) -> None:
        """Send the process a job; that it may be gone is found out by ``take``."""
        self.job = job
        with contextlib.suppress(OSError):
            self.pipe.send((job, code_digest()))

    def take(self) -> News:
        """Return what came of the job."""
        try:
            news: News = self.pipe.recv()
            return news
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f'by signal {-code}' if code < 0 else f'with code {code}'
            return Lost(f'its process was ended {how}')


def _work(pipe: Any) -> None:
    # Ctrl-C reaches every process of the terminal; the one that was started decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    while True:
        try:
            job, code = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(job, code))


def _end_with_parent() -> None:
    """Leave no run behind when the experiment is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
