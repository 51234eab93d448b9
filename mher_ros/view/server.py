"""The page as a whole: viser behind a gate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import ipaddress
import logging
import secrets
import socket
import sys

from mher_ros.errors import MherError
from mher_ros.view.address import HOST, PORT
from mher_ros.view.admission import check_host, is_loopback
from mher_ros.view.gate import Gate
import rich
import viser
from viser._messages import FileTransferPart, FileTransferStartUpload, GuiUpdateMessage
from viser.infra import ClientId

__all__ = ['PageServer', 'warning_of']


class PageServer:
    """
    Serves one page, for any number of browsers.

    ``viser`` draws it, and lets anyone in who finds it; ``address`` is where people go. ``port``
    is counted up when taken; 0: any. A token ('' for none) is needed where ``host`` is not this
    machine alone. ``stop`` is called at once, by a thread of its own, when somebody presses the
    button to stop the arm.
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
        _say_garbage_in_a_line()
        try:
            backend = self.viser.get_host(), self.viser.get_port()
            self._gate = Gate(host, port, token, backend, stop)
        except MherError:
            self._stop()
            raise
        query = f'?token={token}' if token else ''
        self.address: str = f'http://{_name_of(host)}:{self._gate.port}/{query}'

    @property
    def port(self) -> int:
        return self._gate.port

    def close(self) -> None:
        """Send all browsers away; a second call does nothing."""
        self._gate.close()
        self._stop()

    def _stop(self) -> None:
        with _quiet():
            self.viser.stop()


def warning_of(host: str) -> str:
    """Return what to say to the person who serves the page on ``host``; '' where all is well."""
    if is_loopback(host):
        return ''
    return (
        f'the page is open to the network on {host}: anyone who has its address and token can '
        'move the arm, and both travel unencrypted'
    )


class _Viser(viser.ViserServer):
    """A server that takes from browsers what is theirs to tell, and no more."""

    def __init__(self, host: str, port: int, label: str) -> None:
        super().__init__(host, port, label, verbose=False)
        server, take = self._websock_server, self.gui._handle_gui_updates

        async def take_values(client: ClientId, message: GuiUpdateMessage) -> None:
            # It would set any attribute that a message names: even what a button does.
            if isinstance(message.updates, dict) and set(message.updates) <= {'value'}:
                await take(client, message)

        server.unregister_handler(GuiUpdateMessage, take)
        server.register_handler(GuiUpdateMessage, take_values)
        # No page of ours takes files, and what is sent would be kept.
        server.unregister_handler(FileTransferStartUpload)
        server.unregister_handler(FileTransferPart)

    def request_share_url(self, verbose: bool = True) -> None:
        """Refuse: any browser may ask for it, and it would open the page to the internet."""


def _hidden_host() -> str:
    """
    Return an address of this machine alone that a page elsewhere cannot guess.

    Its script could try all ports of 127.0.0.1 from within a browser here, and so go round the
    gate; Linux has 16 million such addresses.
    """
    if sys.platform != 'linux':
        return '127.0.0.1'
    return str(ipaddress.IPv4Address('127.0.0.0') + 256 + secrets.randbelow(2**24 - 512))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep viser's banner, which names the port behind the gate, off the terminal."""
    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def _say_garbage_in_a_line() -> None:
    """Have messages that viser cannot read logged without a traceback each."""
    logger = logging.getLogger('websockets.server')
    if _shorten not in logger.filters:
        logger.addFilter(_shorten)


def _shorten(record: logging.LogRecord) -> bool:
    if record.exc_info:
        error, record.exc_info = record.exc_info[1], None
        record.msg = 'a browser sent what the page does not understand (%s) and was sent away'
        record.args = (type(error).__name__,)
        record.levelno, record.levelname = logging.WARNING, 'WARNING'
    return True


def _name_of(host: str) -> str:
    """Return what a person types into a browser to get to ``host``."""
    if host in ('', '0.0.0.0', '::'):
        return socket.gethostname()
    return f'[{host}]' if ':' in host else host
