"""One process of those that a supervisor runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
import math
import os
import signal
import subprocess
import threading
import time

from mher_ros.errors import MherError

__all__ = ['Child']


class Child:
    """
    A command that runs, as leader of a session of its own.

    ``on_line`` (with a line, without its end) and ``on_end`` are called from other threads,
    ``on_end`` last. ``ladder`` are the signals that ``stop`` sends one after the other, each with
    the time to wait for its effect [s].
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None,
        ladder: Iterable[tuple[signal.Signals, float]],
        on_line: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> None:
        self.stopping = False
        """Whether ``stop`` was called."""
        self.sent = ''
        """Name of the signal that was sent last."""
        self.deadline = math.inf
        """When that signal is due to have worked, on the clock ``time.monotonic``."""
        self._ladder = iter(ladder)
        self._on_line, self._on_end = on_line, on_end
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise MherError(f'cannot start {command[0]}: {error.strerror}') from error
        self.pid = self._process.pid
        # Held while a signal is sent and while the process is collected: until then its number
        # is no other's.
        self._lock = threading.Lock()
        self._collected = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._wait, daemon=True).start()

    @property
    def returncode(self) -> int:
        """The exit code, or -n if signal n ended it; to be read after ``on_end``."""
        code: int = self._process.returncode
        return code

    def stop(self) -> None:
        """Send the next, firmer signal."""
        self.stopping = True
        number, patience = next(self._ladder, (signal.SIGKILL, math.inf))
        self.sent = number.name
        self.deadline = time.monotonic() + patience
        self._send(number)

    def _send(self, number: signal.Signals) -> None:
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
            # What it started and left behind, which may hold its output open.
            os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
            self._collected = True
        # Only what has left the session could hold the output open now; it is not waited for.
        self._reader.join(timeout=1.0)
        self._on_end()
