"""The door of the page: the one port that is open, in front of a server that lets anyone in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
import contextlib
import errno
import logging
import math
import socket
import threading
import time

from mher_ros.errors import MherError
from mher_ros.view.admission import Admission, done, FRAMING, refusal, STOP_REQUEST
from mher_ros.view.flood import Allowance, FloodError, MessageMeter

__all__ = ['Gate']

LOGGER = logging.getLogger(__name__)

LONGEST_HEAD = 16 * 1024
"""Bytes of the head of a request."""

HEAD_TIME = 5.0
"""Time in which the head of a request must have come [s]."""

STALLED_TIME = 10.0
"""Time in which a browser or the server must take what is sent to it [s]."""

MOST_CONNECTIONS = 256
"""Connections at once; each takes three descriptors of the process."""

ROOM_FOR_STOPS = 64
"""Connections on top of these, on which the arm may be stopped and nothing else."""

WARY_TIME = 10.0
"""Time after a flood in which few new websockets are let through: who floods comes again [s]."""

WARY_WEBSOCKETS = 1.0
"""Websockets in a second that are let through then; each is sent the whole scene."""

PORTS_TRIED = 21


class Gate:
    """
    Looks at the first request of every connection, and joins those let through to the server.

    Runs in a thread of its own. The server behind it, at ``backend`` (host, port), answers one
    request per connection or takes it over as a websocket, so the first request decides for all.
    ``port`` 0 is any free one; another one that is taken is counted up, 20 times at most.

    A request to stop the arm is answered here, by ``stop``: it never waits for the server.
    """

    def __init__(
        self,
        host: str,
        port: int,
        token: str,
        backend: tuple[str, int],
        stop: Callable[[], None] | None = None,
    ) -> None:
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self._backend = backend
        self._stop_arm = stop
        self._admission = Admission(token, self.port, takes_stop=stop is not None)
        self._websockets = Allowance(WARY_WEBSOCKETS, WARY_WEBSOCKETS)
        self._flooded_at = -math.inf
        self._connections: set[asyncio.Task] = set()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name='page gate', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port and all connections; a second call does nothing."""
        with contextlib.suppress(RuntimeError):  # The loop is closed.
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._take, sock=self._socket, limit=LONGEST_HEAD)
        await self._stop.wait()
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # The transports close on the loop's next round.

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if len(self._connections) <= MOST_CONNECTIONS + ROOM_FOR_STOPS:
                await self._admit(reader, writer)
        except FloodError as error:
            self._flooded_at = time.monotonic()
            LOGGER.warning('a browser was sent away: %s', error)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # Gone, too slow or too much: nothing is owed to it.
        except asyncio.CancelledError:
            pass  # The gate closes; asyncio would log a cancelled connection as an error.
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with _at_most(HEAD_TIME, writer):
            head = await reader.readuntil(b'\r\n\r\n')
        reply = self._admission.answer(head)
        if reply is None and head.startswith(STOP_REQUEST):
            reply = self._stopped()
        elif reply is None and (len(self._connections) > MOST_CONNECTIONS or self._is_wary(head)):
            reply = refusal('503 Service Unavailable', 'Too many are watching.')
        if reply is not None:
            await _send(writer, reply)
            await _finish(reader, writer)
            return
        try:
            backend = await asyncio.open_connection(*self._backend)
        except OSError:
            await _send(writer, refusal('502 Bad Gateway', 'The page is no longer there.'))
            await _finish(reader, writer)
            return
        try:
            await _send(backend[1], head)
            await _join(reader, writer, *backend)
        finally:
            backend[1].transport.abort()

    def _is_wary(self, head: bytes) -> bool:
        """Return whether a request is for one of too many websockets after a flood."""
        was_flooded = time.monotonic() - self._flooded_at < WARY_TIME
        return was_flooded and b'\r\nupgrade:' in head.lower() and not self._websockets.take()

    def _stopped(self) -> bytes:
        """Stop the arm, and return the answer to the browser that asked for it."""
        assert self._stop_arm is not None
        try:
            self._stop_arm()
        except Exception:
            LOGGER.exception('the arm could not be stopped from the page')
            return refusal('500 Internal Server Error', 'The arm could not be stopped.')
        return done()


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    backend_reader: asyncio.StreamReader,
    backend_writer: asyncio.StreamWriter,
) -> None:
    """Pass bytes both ways until the server has closed its side; FloodError if too many come."""
    upward = asyncio.ensure_future(_pass_on(reader, backend_writer, MessageMeter()))
    try:
        reply = await backend_reader.readuntil(b'\r\n\r\n')
        await _send(writer, reply[:-2] + FRAMING + b'\r\n')
        await _pass_on(backend_reader, writer)
    finally:
        upward.cancel()
        (ended,) = await asyncio.gather(upward, return_exceptions=True)
    if isinstance(ended, OSError):
        raise ended
    await _finish(reader, writer)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, meter: MessageMeter | None = None
) -> None:
    """Send what comes, no faster than it is taken; end when it ends, break off when it breaks."""
    try:
        while data := await reader.read(64 * 1024):
            if meter is not None:
                meter.count(data)
            await _send(writer, data)
        writer.write_eof()
    except OSError:
        writer.transport.abort()
        raise


async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    with _at_most(STALLED_TIME, writer):
        await writer.drain()


async def _finish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let a browser take the last bytes: it drops them when closed on what it still sends."""
    writer.write_eof()
    with _at_most(STALLED_TIME, writer):
        while await reader.read(64 * 1024):
            pass


@contextlib.contextmanager
def _at_most(seconds: float, writer: asyncio.StreamWriter) -> Iterator[None]:
    """Drop the connection after ``seconds``. asyncio.wait_for can lose a cancellation."""
    alarm = asyncio.get_running_loop().call_later(seconds, writer.transport.abort)
    try:
        yield
    finally:
        alarm.cancel()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket on ``port`` or, when that is taken, one of the next."""
    address = '127.0.0.1' if host == 'localhost' else host
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    tried = range(port, min(port + PORTS_TRIED, 65536)) if port else (0,)
    for number in tried:
        try:
            return socket.create_server((address, number), family=family, backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MherError(
                    f'the page cannot be served on {host}, port {number}: {error.strerror}'
                ) from None
    raise MherError(
        f'the page finds no free port on {host}: {tried[0]} to {tried[-1]} are all taken'
    )
