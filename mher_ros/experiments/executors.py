"""Executors of jobs: processes on this machine, or a Ray cluster."""

import collections
from collections.abc import Sequence
from contextlib import closing, ExitStack, suppress
import importlib
import logging
import multiprocessing
from multiprocessing.connection import Connection, wait
import os
import signal
import socket
import threading
from typing import Any

from mher_ros.experiments.jobs import attempt, Event, Events, Failure, Job, Lost, RETRIES
from mher_ros.experiments.provenance import code_digest, cores
from mher_ros.options import OptionError

CONNECT_TIMEOUT = 10.0  # [s]


def run_local(jobs: Sequence[Job], processes: int | None = None) -> Events:
    """Do the jobs in order, by default as many at once as there are cores, and yield events."""
    # If a process is killed, only its job is lost, and started again. The processes always end
    # with this one.
    waiting = collections.deque(jobs)
    losses: collections.Counter[Job] = collections.Counter()
    with ExitStack() as stack:
        count = min(processes or cores(), len(waiting))
        idle = [stack.enter_context(closing(_Worker())) for _ in range(count)]
        busy: dict[Connection, _Worker] = {}
        while waiting or busy:
            while waiting and idle:
                worker, job = idle.pop(), waiting.popleft()
                busy[worker.pipe] = worker
                worker.begin(job)
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker = busy.pop(pipe)
                job, event = worker.job, worker.take()
                if isinstance(event, Lost):
                    idle.append(stack.enter_context(closing(_Worker())))
                    losses[job] += 1
                    if losses[job] > RETRIES:
                        event = Failure(f'{event.reason}, {losses[job]} times')
                    else:
                        waiting.appendleft(job)
                else:
                    idle.append(worker)
                yield job, event


class _Worker:
    job: Job

    def __init__(self) -> None:
        # Not forkserver: its processes would outlive this one if it is killed.
        context = multiprocessing.get_context('spawn')
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs,), daemon=True)
        self._process.start()
        # Only the process holds this end now: when it ends, reading from the pipe ends.
        theirs.close()

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self.pipe.close()

    def begin(self, job: Job) -> None:
        """Send the process a job; if the process has ended, ``take`` returns that."""
        self.job = job
        with suppress(OSError):
            self.pipe.send((job, code_digest()))

    def take(self) -> Event:
        try:
            event: Event = self.pipe.recv()
            return event
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode or 0
            how = f'by signal {-code}' if code < 0 else f'with code {code}'
            return Lost(f'its process was ended {how}')


def _work(pipe: Any) -> None:
    # A terminal sends Ctrl-C to all its processes; only the main process handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job, code = pipe.recv()
        except EOFError:
            return
        pipe.send(attempt(job, code))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def run_on_ray(jobs: Sequence[Job], address: str) -> Events:
    """Do the jobs on the Ray cluster at ``address``, and yield events."""
    # Every node of the cluster needs the same mher_ros, but no shared files: results come back
    # through Ray. Ray starts a job again if its worker ends.
    ray = importlib.import_module('ray')
    _check_address(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise OptionError(f'no Ray cluster at {address}: {error}') from error
    try:
        remote = ray.remote(num_cpus=1, max_retries=RETRIES)(attempt)
        running = {remote.remote(job, code_digest()): job for job in jobs}
        while running:
            (done,), _ = ray.wait(list(running), num_returns=1)
            yield running.pop(done), _event(ray, done)
    finally:
        ray.shutdown()


def _check_address(address: str) -> None:
    """Raise OptionError at once if nothing answers; Ray would try for minutes."""
    host, _, port = address.removeprefix('ray://').rpartition(':')
    if not host or not port.isdecimal():
        raise OptionError(f'--ray takes HOST:PORT, got {address!r}')
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT).close()
    except OSError as error:
        raise OptionError(f'no Ray cluster at {address}: {error}') from error


def _event(ray: Any, done: Any) -> Event:
    try:
        event: Event = ray.get(done)
        return event
    except ray.exceptions.RayError as error:
        first = next(filter(None, map(str.strip, str(error).splitlines())), '')
        return Failure(f'{type(error).__name__}: {first}', str(error))
