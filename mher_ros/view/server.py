"""The server of a page: viser behind a reverse proxy."""

import asyncio
from collections.abc import Callable, Iterator
import contextlib
import ipaddress
import logging
import secrets
import socket
import sys
from typing import Any

from mher_ros.errors import MherError
from mher_ros.view.access_control import check_host, HOST, is_loopback, PORT
from mher_ros.view.reverse_proxy import ReverseProxy
import rich
import viser
from viser._messages import FileTransferPart, FileTransferStartUpload, GuiUpdateMessage
from viser.infra import _infra, ClientId
from viser.infra._async_message_buffer import AsyncMessageBuffer


class PageServer:
    """
    Serves one page, for any number of browsers.

    ``viser`` draws it, without access control; ``address`` is the address of the proxy, for
    people. If ``port`` is taken, the next free one is used; 0: any. A token ('' for none) is
    needed unless ``host`` is a loopback address. ``stop`` is called at once, in the thread of the
    proxy, when somebody presses the button to stop the arm.
    """

    def __init__(
        self,
        host: str = HOST,
        port: int = PORT,
        token: str = '',
        label: str = 'mher',
        stop: Callable[[], None] | None = None,
    ) -> None:
        check_host(host, token)
        with _quiet():
            self.viser = _Viser(_hidden_host(), 0, label)
        logging.getLogger('websockets.server').addFilter(_shorten)
        try:
            backend = self.viser.get_host(), self.viser.get_port()
            self._proxy = ReverseProxy(host, port, token, backend, stop)
        except MherError:
            self._stop()
            raise
        query = f'?token={token}' if token else ''
        self.port = self._proxy.port
        self.address = f'http://{_name_of(host)}:{self.port}/{query}'

    def close(self) -> None:
        """Disconnect all browsers; a second call does nothing."""
        self._proxy.close()
        self._stop()

    def _stop(self) -> None:
        with _quiet():
            self.viser.stop()


def warning_of(host: str) -> str:
    """Return a warning for the person who serves the page on ``host``; '' if it is safe."""
    if is_loopback(host):
        return ''
    return (
        f'the page is open to the network on {host}: anyone who has its address and token can '
        'move the arm, and both travel unencrypted'
    )


class _Viser(viser.ViserServer):
    """A server that accepts only the messages from browsers that our pages need."""

    def __init__(self, host: str, port: int, label: str) -> None:
        super().__init__(host, port, label, verbose=False)
        server, take = self._websock_server, self.gui._handle_gui_updates

        async def take_values(client: ClientId, message: GuiUpdateMessage) -> None:
            # viser would set any attribute that a message names, even the action of a button.
            if isinstance(message.updates, dict) and set(message.updates) <= {'value'}:
                await take(client, message)

        server.unregister_handler(GuiUpdateMessage, take)
        server.register_handler(GuiUpdateMessage, take_values)
        # Our pages take no files, and viser would keep what is sent.
        server.unregister_handler(FileTransferStartUpload)
        server.unregister_handler(FileTransferPart)

    def request_share_url(self, verbose: bool = True) -> None:
        """Do nothing: any browser may ask for it, and it would open the page to the internet."""


class _LoopEvent(asyncio.Event):
    """An event that only the thread of ``loop`` sets: those of asyncio are not thread-safe."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._of = loop

    def set(self) -> None:
        # From any other thread viser calls this, and then lets the loop call it.
        if asyncio._get_running_loop() is self._of:
            super().set()


class _MessageBuffer(AsyncMessageBuffer):
    """Messages to browsers, from any thread."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.message_event = _LoopEvent(self.event_loop)


_infra.AsyncMessageBuffer = _MessageBuffer  # type: ignore[attr-defined]


def _hidden_host() -> str:
    """Return a loopback address that another web site cannot guess."""
    # In a browser on this machine, its script could try all ports of 127.0.0.1, and so bypass the
    # proxy. Linux has 16 million loopback addresses.
    if sys.platform != 'linux':
        return '127.0.0.1'
    return str(ipaddress.IPv4Address('127.0.0.0') + 256 + secrets.randbelow(2**24 - 512))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Do not print viser's banner, which has the port behind the proxy."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _shorten(record: logging.LogRecord) -> bool:
    """Log messages that viser cannot read without tracebacks."""
    if record.exc_info:
        error, record.exc_info = record.exc_info[1], None
        record.msg = 'a browser sent an invalid message (%s), and was disconnected'
        record.args = (type(error).__name__,)
        record.levelno, record.levelname = logging.WARNING, 'WARNING'
    return True


def _name_of(host: str) -> str:
    """Return ``host`` as it is written in an address."""
    if host in ('', '0.0.0.0', '::'):
        return socket.gethostname()
    return f'[{host}]' if ':' in host else host
