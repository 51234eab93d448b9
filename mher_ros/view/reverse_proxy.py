"""The open port of the page: a reverse proxy with access control, in front of viser."""

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
from mher_ros.view import access_control
from mher_ros.view.access_control import FloodError, MessageLimit, RateLimit, refusal

LOGGER = logging.getLogger(__name__)
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

LONGEST_HEAD = 16 * 1024  # bytes of the head of a request
HEAD_TIME = 5.0  # time within which the head of a request must arrive [s]
STALLED_TIME = 10.0  # time within which a browser or the server must take what is sent [s]
# Admitted connections, with three file descriptors each, and others: without a complete request,
# or answered here. Together they need fewer than 1024 descriptors, the default limit of a process.
MOST_ADMITTED = MOST_WAITING = 208
# Connections that are accepted before earlier requests are read. Far fewer than `MOST_WAITING`, so
# that a request that was sent at once is read before its connection has waited longest.
ACCEPTED_AT_ONCE = 16
LONGEST_QUEUE = 1024  # backlog of the kernel, which may allow fewer connections
FLOOD_TIME = 10.0  # time after a flood in which new websockets are limited [s]
FLOOD_WEBSOCKETS = 1.0  # new websockets per second then; each is sent the whole scene
PORTS_TRIED = 21


class ReverseProxy:
    """
    Checks the first request of every connection, and connects the admitted ones to the server.

    Runs in its own thread. The server behind it, at ``backend`` (host, port), answers one request
    per connection or upgrades it to a websocket, so it is enough to check the first request.
    ``port`` 0 is any free one; if another one is taken, the next 20 are tried.

    A request to stop the arm is answered here, with ``stop``: it never waits for the server. Held
    connections cannot keep it out: when too many are waiting, the one that has waited longest is
    closed for each new one.
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
        self._access = access_control.AccessControl(token, self.port, stop is not None)
        self._websockets = RateLimit(FLOOD_WEBSOCKETS, FLOOD_WEBSOCKETS)
        self._flooded_at = -math.inf
        self._connections: set[asyncio.Task] = set()
        self._admitted: set[asyncio.Task] = set()
        self._waiting: dict[asyncio.Task, asyncio.StreamWriter] = {}
        """Connections that are not admitted, the oldest first."""
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name='page proxy', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port and all connections; a second call does nothing."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._take, sock=self._socket, limit=LONGEST_HEAD, backlog=ACCEPTED_AT_ONCE
        )
        # asyncio uses `backlog` for both; with a short one the kernel refuses connections.
        self._socket.listen(LONGEST_QUEUE)
        await self._stop.wait()
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next iteration of the loop

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self._waiting[task] = writer
        if len(self._waiting) > MOST_WAITING:
            self._waiting.pop(next(iter(self._waiting))).transport.abort()
        try:
            await self._admit(task, reader, writer)
        except FloodError as error:
            self._flooded_at = time.monotonic()
            LOGGER.warning('closed the connection of a browser: %s', error)
        except (OSError, EOFError, asyncio.LimitOverrunError):
            pass  # the browser has disconnected, is too slow, or sent too much
        except asyncio.CancelledError:
            pass  # the proxy closes; asyncio would log a cancelled connection as an error
        finally:
            self._connections.discard(task)
            self._admitted.discard(task)
            self._waiting.pop(task, None)
            writer.transport.abort()

    async def _admit(
        self, task: asyncio.Task, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with _at_most(HEAD_TIME, writer):
            head = await reader.readuntil(b'\r\n\r\n')
        reply = self._access.answer(head)
        if reply is None and head.startswith(access_control.STOP_REQUEST):
            reply = self._stopped()
        elif reply is None and (len(self._admitted) >= MOST_ADMITTED or self._is_limited(head)):
            reply = refusal('503 Service Unavailable', 'Too many browsers are connected.')
        if reply is None:
            self._admitted.add(task)
            self._waiting.pop(task, None)
            try:
                backend = await asyncio.open_connection(*self._backend)
            except OSError:
                reply = refusal('502 Bad Gateway', 'The page has ended.')
        if reply is not None:
            await _send(writer, reply)
            await _finish(reader, writer)
            return
        try:
            await _send(backend[1], head)
            await _connect((reader, writer), backend)
        finally:
            backend[1].transport.abort()

    def _is_limited(self, head: bytes) -> bool:
        """Return whether a request is for one websocket too many after a flood."""
        was_flooded = time.monotonic() - self._flooded_at < FLOOD_TIME
        return was_flooded and b'\r\nupgrade:' in head.lower() and not self._websockets.take()

    def _stopped(self) -> bytes:
        assert self._stop_arm is not None
        try:
            self._stop_arm()
        except Exception:
            LOGGER.exception('cannot stop the arm from the page')
            return refusal('500 Internal Server Error', 'The arm could not be stopped.')
        return access_control.reply('204 No Content', '')  # the browser stays on the page


async def _connect(browser: Connection, server: Connection) -> None:
    """Forward bytes both ways until the server closes its side; FloodError if too many come."""
    (reader, writer), (server_reader, server_writer) = browser, server
    upward = asyncio.ensure_future(_forward(reader, server_writer, MessageLimit()))
    try:
        reply = await server_reader.readuntil(b'\r\n\r\n')
        await _send(writer, reply[:-2] + access_control.FRAMING + b'\r\n')
        await _forward(server_reader, writer)
    finally:
        upward.cancel()
        (ended,) = await asyncio.gather(upward, return_exceptions=True)
    if isinstance(ended, OSError):
        raise ended
    await _finish(reader, writer)


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: MessageLimit | None = None
) -> None:
    """Forward bytes, no faster than they are taken, to the end or to an error."""
    try:
        while data := await reader.read(64 * 1024):
            if limit is not None:
                limit.count(data)
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
    """Read what a browser still sends: if closed before, it would discard the last bytes."""
    writer.write_eof()
    with _at_most(STALLED_TIME, writer):
        while await reader.read(64 * 1024):
            pass


@contextlib.contextmanager
def _at_most(seconds: float, writer: asyncio.StreamWriter) -> Iterator[None]:
    """Close the connection after ``seconds``; asyncio.wait_for can lose a cancellation."""
    alarm = asyncio.get_running_loop().call_later(seconds, writer.transport.abort)
    try:
        yield
    finally:
        alarm.cancel()


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket on ``port`` or, if it is taken, on one of the next."""
    address = '127.0.0.1' if host == 'localhost' else host
    family = socket.AF_INET6 if ':' in address else socket.AF_INET
    tried = range(port, min(port + PORTS_TRIED, 65536)) if port else (0,)
    for number in tried:
        try:
            return socket.create_server((address, number), family=family, backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise MherError(
                    f'cannot serve the page on {host}, port {number}: {error.strerror}'
                ) from None
    raise MherError(f'no free port for the page on {host} from {tried[0]} to {tried[-1]}')
