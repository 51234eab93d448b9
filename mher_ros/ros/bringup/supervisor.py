"""Runs several processes, and ends all of them in any case."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time

from mher_ros.errors import MherError
from mher_ros.ros.bringup import node_spec
from mher_ros.ros.bringup.guardian import guarded
from mher_ros.ros.bringup.node_spec import how_it_ended, Role
from mher_ros.ros.common.process import on_signals

OWN_NAME = 'mher'  # name before the lines of the supervisor itself


@dataclasses.dataclass(frozen=True)
class Process:
    """A command to run; names are unique."""

    name: str
    command: Sequence[str]
    role: Role


@dataclasses.dataclass(frozen=True)
class Patience:
    """Times to wait [s]."""

    interrupt: float = node_spec.INTERRUPT_PATIENCE  # from SIGINT to SIGTERM
    terminate: float = node_spec.TERMINATE_PATIENCE  # from SIGTERM to SIGKILL
    echo: float = 1.0  # a signal repeated within it counts once: `make` sends it twice


def supervise(
    processes: Sequence[Process],
    environment: Mapping[str, str] | None = None,
    patience: Patience | None = None,
) -> int:
    """
    Run all processes until they have ended, and return the exit code.

    This is the code of the process with Role.MAIN, or 128 + n if signal n ended it; 0 without a
    main process; 1 if one with Role.NEEDED ended first. The end of such a process stops all.

    SIGINT, SIGTERM and SIGHUP stop the main process and then the others; the exit code is still
    that of the main process. A repeated signal sends the next stronger one. Each process has its
    own session, so that Ctrl-C in a terminal reaches it once, from here. Processes that it leaves
    in its process group are killed. If this process is killed, a guardian stops them.

    Lines are written to standard output after the name of the process; if that fails, all are
    stopped. Call this from the main thread.
    """
    return _Supervisor(processes, patience or Patience()).run(processes, environment)


class _Supervisor:
    def __init__(self, processes: Sequence[Process], patience: Patience) -> None:
        self._patience = patience
        self._width = max(len(name) for name in (OWN_NAME, *(one.name for one in processes))) + 2
        # Other threads and signal handlers put events: SimpleQueue.put is reentrant.
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._alive: dict[str, _Child] = {}
        self._asked_at: float | None = None
        self._exit_code = 0
        self._failed = False

    def run(self, processes: Sequence[Process], environment: Mapping[str, str] | None) -> int:
        patience = self._patience
        with (
            self._signals_as_events(),
            guarded(patience.interrupt, patience.terminate) as self._send_to_guardian,
        ):
            for process in processes:
                self._start(process, environment)
            while self._alive:
                self._next_event()()
        return 1 if self._failed else self._exit_code

    def _start(self, process: Process, environment: Mapping[str, str] | None) -> None:
        child = _Child(
            process,
            environment,
            self._patience,
            on_line=lambda line: self._events.put(lambda: self._write(process.name, line)),
            on_end=lambda code: self._events.put(lambda: self._on_end(process.name, code)),
        )
        self._alive[process.name] = child
        self._send_to_guardian(f'+{child.pid}')

    def _next_event(self) -> Callable[[], None]:
        deadline = min(child.deadline for child in self._alive.values())
        timeout = None if math.isinf(deadline) else max(0.0, deadline - time.monotonic())
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return self._on_deadline

    def _on_end(self, name: str, code: int) -> None:
        """Handle the end of a process; ``code``: exit code, or -n if signal n ended it."""
        child = self._alive.pop(name)
        self._send_to_guardian(f'-{child.pid}')
        ended = f'{name} {how_it_ended(code)}'
        others = [other for other, running in self._alive.items() if not running.sent]
        stopping = f'; stopping {" and ".join(others)}' if others else ''
        if child.role is Role.MAIN:
            self._exit_code = code if code >= 0 else 128 - code
            if code != 0:
                self._say(ended + stopping)
            self._stop(others)
        elif child.role is Role.NEEDED and not child.sent and self._asked_at is None:
            self._failed = True
            self._say(f'{ended}, but is needed{stopping}')
            self._stop(others)
        elif not child.sent:
            self._say(ended)

    def _on_deadline(self) -> None:
        for name, child in self._alive.items():
            if child.deadline <= time.monotonic():
                self._say(f'{name} still runs after {child.sent}')
                child.stop()

    def _on_signal(self, number: int) -> None:
        name, now = signal.Signals(number).name, time.monotonic()
        if self._asked_at is None:
            self._asked_at = now
            main = [other for other, child in self._alive.items() if child.role is Role.MAIN]
            asked = main or list(self._alive)
            self._say(f'{name}: stopping {" and ".join(asked)}')
            self._stop(asked)
        elif now - self._asked_at >= self._patience.echo:
            self._say(f'{name} again: sending the next signal')
            for child in self._alive.values():
                child.stop()

    def _stop(self, names: Iterable[str]) -> None:
        for child in (self._alive[name] for name in names):
            if not child.sent:
                child.stop()

    def _say(self, sentence: str) -> None:
        self._write(OWN_NAME, sentence)

    def _write(self, name: str, line: str) -> None:
        text = f'{f"[{name}]":<{self._width}} {line}'.rstrip() + '\n'
        encoding = sys.stdout.encoding or 'utf-8'
        sys.stdout.write(text.encode(encoding, 'replace').decode(encoding))
        sys.stdout.flush()

    @contextlib.contextmanager
    def _signals_as_events(self) -> Iterator[None]:
        def handle(number: int, frame: object) -> None:
            self._events.put(functools.partial(self._on_signal, number))

        before = on_signals(handle)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Child:
    """A process in its own session; other threads call ``on_line`` and, last, ``on_end``."""

    def __init__(
        self,
        process: Process,
        environment: Mapping[str, str] | None,
        patience: Patience,
        on_line: Callable[[str], None],
        on_end: Callable[[int], None],
    ) -> None:
        self.role = process.role
        self.sent = ''  # name of the last signal of `stop`; empty: it was not called
        self.deadline = math.inf  # time (`time.monotonic`) for the next signal
        self._ladder = iter(
            ((signal.SIGINT, patience.interrupt), (signal.SIGTERM, patience.terminate))
        )
        self._on_line, self._on_end = on_line, on_end
        try:
            self._process = subprocess.Popen(
                process.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise MherError(f'cannot start {process.command[0]}: {error.strerror}') from error
        self.pid = self._process.pid
        # Held while a signal is sent and while the process is reaped: until then no other process
        # can have its number.
        self._lock = threading.Lock()
        self._collected = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, daemon=True).start()

    def stop(self) -> None:
        number, patience = next(self._ladder, (signal.SIGKILL, math.inf))
        self.sent, self.deadline = number.name, time.monotonic() + patience
        with self._lock:
            if not self._collected:
                os.killpg(self.pid, number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for raw in self._process.stdout:
            self._on_line(raw.decode(errors='replace').rstrip('\r\n'))

    def _wait(self) -> None:
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            # Processes that it left behind, which may keep its output open.
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            self._collected = True
        # Only a process in another session can keep the output open now; do not wait for it.
        self._reader.join(timeout=1.0)
        self._on_end(self._process.returncode)
