"""Runs processes that belong together, and leaves none behind, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import math
import queue
import signal
import sys
import time

from mher_ros.ros.bringup.child import Child
from mher_ros.ros.bringup.guardian import guarded
from mher_ros.ros.bringup.system import (
    how_it_ended,
    INTERRUPT_PATIENCE,
    Role,
    TERMINATE_PATIENCE,
)

__all__ = ['Patience', 'Process', 'supervise', 'Write']

FAILED = 1
OWN_NAME = 'mher'
"""Stands where a process's name does before what the supervisor itself says."""

Write = Callable[[str, str], None]
"""Takes the name of a process and a line that it printed, without the line's end."""


@dataclasses.dataclass(frozen=True)
class Process:
    """A command to run; ``role`` says what its end means to the others. Names are unique."""

    name: str
    command: Sequence[str]
    role: Role


@dataclasses.dataclass(frozen=True)
class Patience:
    """Times to wait [s]."""

    interrupt: float = INTERRUPT_PATIENCE
    """From SIGINT to SIGTERM."""
    terminate: float = TERMINATE_PATIENCE
    """From SIGTERM to SIGKILL."""
    echo: float = 1.0
    """Within which a repeated signal is the same wish: ``timeout`` and ``make`` send it twice."""


def supervise(
    processes: Sequence[Process],
    environment: Mapping[str, str] | None = None,
    write: Write | None = None,
    patience: Patience | None = None,
) -> int:
    """
    Run all processes until they have ended, and return the exit code.

    That is the code of the process with Role.MAIN, or 128 + n if signal n ended it; 0 if none is
    main; 1 if one with Role.NEEDED ended first. The end of such a process stops all others.

    SIGINT, SIGTERM and SIGHUP ask the main process to stop and, when it has, the others; the code
    is still that of the main process. Asking again is firmer. Each process leads a session of its
    own, so that a terminal's Ctrl-C reaches it once, from here. What it leaves behind in its
    process group is killed. If this process is killed itself, a guardian stops them.

    Lines go to ``write``, by default to standard output after the process's name; what it raises
    is raised again once all have been stopped. To be called from the main thread.
    """
    supervisor = _Supervisor(processes, write or _prefixed(processes), patience or Patience())
    return supervisor.run(environment)


def _prefixed(processes: Sequence[Process]) -> Write:
    width = max(len(name) for name in (OWN_NAME, *(process.name for process in processes))) + 2

    def write(name: str, line: str) -> None:
        text = f'{f"[{name}]":<{width}} {line}'.rstrip() + '\n'
        encoding = sys.stdout.encoding or 'utf-8'
        sys.stdout.write(text.encode(encoding, 'replace').decode(encoding))
        sys.stdout.flush()

    return write


class _Supervisor:
    def __init__(self, processes: Sequence[Process], write: Write, patience: Patience) -> None:
        self._processes = processes
        self._roles = {process.name: process.role for process in processes}
        self._write = write
        self._patience = patience
        # Filled by other threads and by signal handlers; put of a SimpleQueue is safe in those.
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._alive: dict[str, Child] = {}
        self._asked_at: float | None = None
        self._exit_code = 0
        self._failed = False

    def run(self, environment: Mapping[str, str] | None) -> int:
        patience = self._patience
        with (
            self._signals_as_events(),
            guarded(patience.interrupt, patience.terminate) as self._tell_guardian,
        ):
            for process in self._processes:
                self._start(process, environment)
            while self._alive:
                self._next_event()()
        return FAILED if self._failed else self._exit_code

    def _start(self, process: Process, environment: Mapping[str, str] | None) -> None:
        ladder = (
            (signal.SIGINT, self._patience.interrupt),
            (signal.SIGTERM, self._patience.terminate),
            (signal.SIGKILL, math.inf),
        )
        child = Child(
            process.command,
            environment,
            ladder,
            on_line=lambda line: self._events.put(lambda: self._write(process.name, line)),
            on_end=lambda: self._events.put(lambda: self._on_end(process.name)),
        )
        self._alive[process.name] = child
        self._tell_guardian(f'+{child.pid}')

    def _next_event(self) -> Callable[[], None]:
        deadline = min(child.deadline for child in self._alive.values())
        timeout = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return self._on_deadline

    def _on_end(self, name: str) -> None:
        child, role = self._alive.pop(name), self._roles[name]
        self._tell_guardian(f'-{child.pid}')
        ended = f'{name} {how_it_ended(child.returncode)}'
        others = [other for other in self._alive if not self._alive[other].stopping]
        stopping = f'; stopping {" and ".join(others)}' if others else ''
        if role is Role.MAIN:
            self._exit_code = child.returncode if child.returncode >= 0 else 128 - child.returncode
            if child.returncode != 0:
                self._say(ended + stopping)
            self._stop(others)
        elif role is Role.NEEDED and not child.stopping and self._asked_at is None:
            self._failed = True
            self._say(f'{ended}, but is needed{stopping}')
            self._stop(others)
        elif not child.stopping:
            self._say(ended)

    def _on_deadline(self) -> None:
        for name, child in self._alive.items():
            if child.deadline <= time.monotonic():
                self._say(f'{name} goes on in spite of {child.sent}')
                child.stop()

    def _on_signal(self, number: int) -> None:
        name, now = signal.Signals(number).name, time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
            main = [other for other in self._alive if self._roles[other] is Role.MAIN]
            asked = main or list(self._alive)
            self._say(f'{name}: stopping {" and ".join(asked)}')
            self._stop(asked)
        elif now - self._asked_at >= self._patience.echo:
            self._say(f'{name} again: firmer')
            for child in self._alive.values():
                child.stop()

    def _stop(self, names: Sequence[str]) -> None:
        for name in names:
            if not self._alive[name].stopping:
                self._alive[name].stop()

    def _say(self, sentence: str) -> None:
        self._write(OWN_NAME, sentence)

    @contextlib.contextmanager
    def _signals_as_events(self) -> Iterator[None]:
        def handle(number: int, frame: object) -> None:
            self._events.put(functools.partial(self._on_signal, number))

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, handle) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
