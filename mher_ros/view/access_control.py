"""Access control of the page, without sockets: who may open it, and how much they may send."""

from collections.abc import Callable
import hmac
import ipaddress
import re
import time
from urllib.parse import parse_qs, urlsplit

from mher_ros.options import OptionError

HOST, PORT = '127.0.0.1', 8080  # default address of a page
STOP_PATH = '/stop'
STOP_REQUEST = f'POST {STOP_PATH} '.encode()  # beginning of a request to stop the arm
FRAMING = b"Content-Security-Policy: frame-ancestors 'none'\r\n"
"""Header that forbids other sites to show this page in a frame, and so to steer clicks."""
LONGEST_MESSAGE = 64 * 1024  # bytes of a message; those of a page have a few hundred
MESSAGES_PER_SECOND = 200.0  # a page sends up to 50 of its camera, 20 of what is dragged
MOST_AT_ONCE = 200.0  # messages that may come in a burst
FREE_BYTES = 1024  # a longer message counts as several of this length

_TOKEN = re.compile(r'[A-Za-z0-9._~-]{8,}')
_HEADER = re.compile(r'([!#$%&\'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*')
_ONCE = ('host', 'origin', 'sec-fetch-dest')
_FRAMES = ('embed', 'fencedframe', 'frame', 'iframe', 'object')


def check_host(host: str, token: str) -> None:
    """Raise OptionError unless the page may be served on ``host`` with ``token`` ('' for none)."""
    if token and not _TOKEN.fullmatch(token):
        raise OptionError(
            'token takes at least 8 letters, digits, dots, dashes, underscores or tildes, '
            f'got {len(token)} characters, or others than these'
        )
    if not token and not is_loopback(host):
        raise OptionError(
            f'host {host} shows the page to the network, where anyone could move the arm: give a '
            'token as well, of at least 8 characters, which becomes part of the address'
        )


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach ``host``."""
    try:
        return host == 'localhost' or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class AccessControl:
    """Refuses a request by its head, or admits it to the page."""

    # Any web site can make a browser send requests, also to this machine. Three headers, which a
    # site cannot forge, show it: ``Origin`` (a script of another site), ``Host`` (a name of
    # another site that resolves to this machine) and ``Sec-Fetch-Dest`` (the page in a frame of
    # another site, which could steer the clicks).
    def __init__(self, token: str, port: int, takes_stop: bool = False) -> None:
        """``takes_stop``: also admit requests to stop the arm."""
        self._token, self._takes_stop = token, takes_stop
        # A browser sends a cookie to all ports of a host. So its name has the port, and its value
        # does not reveal the token to the servers on other ports.
        self._cookie = f'mher_view_{port}'
        self._pass = hmac.new(token.encode(), b'mher_ros view', 'sha256').hexdigest()

    def answer(self, head: bytes) -> bytes | None:
        """Return the reply to the request that begins with ``head``; None: admit it."""
        request = _read(head)
        if request is None:
            return refusal('400 Bad Request', 'This is not a request for a page.')
        method, target, headers = request
        host = headers['host']
        if method != 'GET' and not (self._takes_stop and (method, target) == ('POST', STOP_PATH)):
            return refusal('405 Method Not Allowed', 'This page can only be read.')
        if 'origin' in headers and _authority(headers['origin']) != host.lower():
            return refusal('403 Forbidden', 'Another site may not use this page.')
        if headers.get('sec-fetch-dest') in _FRAMES:
            return refusal('403 Forbidden', 'This page is not shown in a frame of another one.')
        if not self._token:
            if _is_loopback_authority(host):
                return None
            return refusal('403 Forbidden', 'This page is open on its own machine only.')
        given = _token_of(target)
        if given is not None and _same(given, self._token):
            cookie = f'{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict'
            return reply('302 Found', '', 'Location: /', f'Set-Cookie: {cookie}')
        if any(_same(value, self._pass) for value in _cookies(headers, self._cookie)):
            return None
        # A browser that follows a link from another site does not send the new cookie back; with
        # the link on this page it does.
        return refusal(
            '401 Unauthorized',
            'This page needs its token: open the address that was printed when it was started, '
            'with ?token= in it. If you have just done that, <a href="/">open the page</a>.',
        )


class FloodError(ConnectionError):
    """A browser sends more messages than any page does."""


class TooLongError(ConnectionError):
    """A browser sends a longer message than any page does."""


class RateLimit:
    """A token bucket: an amount per second, and a larger amount at once after a pause."""

    def __init__(
        self, per_second: float, at_once: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._at_once, self._clock = per_second, at_once, clock
        self._left, self._at = at_once, clock()

    def take(self, amount: float = 1.0) -> bool:
        """Take an amount and return True, or return False if less than that is left."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._at) * self._per_second)
        self._at = now
        if amount > self._left:
            return False
        self._left -= amount
        return True


class MessageLimit:
    """Limits the messages of a websocket; those of a page have one frame each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = RateLimit(MESSAGES_PER_SECOND, MOST_AT_ONCE, clock)
        self._head = b''
        self._payload = 0  # remaining bytes of the present frame

    def count(self, data: bytes) -> None:
        """Count the next bytes; FloodError or TooLongError if they exceed a limit."""
        at = 0
        while at < len(data):
            if self._payload:
                skipped = min(self._payload, len(data) - at)
                self._payload -= skipped
                at += skipped
                continue
            self._head += data[at : at + 1]
            at += 1
            length = _payload_length(self._head)
            if length is not None:
                self._begin(length)

    def _begin(self, length: int) -> None:
        is_whole = self._head[0] & 0x80
        self._head, self._payload = b'', length
        if length > LONGEST_MESSAGE or not is_whole:
            raise TooLongError
        if not self._rate.take(max(1.0, length / FREE_BYTES)):
            raise FloodError(f'more than {MESSAGES_PER_SECOND:g} messages per second')


def refusal(status: str, sentence: str) -> bytes:
    """Return a reply with an HTML page that gives the reason."""
    return reply(status, f'<!doctype html><title>{status}</title><p>{sentence}</p>\n')


def reply(status: str, body: str, *headers: str) -> bytes:
    content = body.encode()
    lines = [
        f'HTTP/1.1 {status}',
        'Content-Type: text/html; charset=utf-8',
        f'Content-Length: {len(content)}',
        'Cache-Control: no-store',
        'Referrer-Policy: no-referrer',
        'Connection: close',
        FRAMING.decode().rstrip(),
        *headers,
    ]
    return '\r\n'.join([*lines, '', '']).encode() + content


def _read(head: bytes) -> tuple[str, str, dict[str, str]] | None:
    """Return the method, the target and the headers (by lower-case name); None: not HTTP/1.1."""
    lines = head.decode('latin-1').removesuffix('\r\n\r\n').split('\r\n')
    first = lines[0].split(' ')
    if len(first) != 3 or first[2] != 'HTTP/1.1' or not first[1].startswith('/'):
        return None
    headers: dict[str, str] = {}
    for line in lines[1:]:
        found = _HEADER.fullmatch(line)
        if found is None:
            return None
        name, value = found[1].lower(), found[2]
        if name in headers and name in _ONCE:
            return None
        headers[name] = f'{headers[name]}; {value}' if name in headers else value
    return (first[0], first[1], headers) if headers.get('host') else None


def _authority(origin: str) -> str:
    """Return the host and port of an origin; '' if it has none, such as ``null``."""
    scheme, found, authority = origin.lower().partition('://')
    return authority if found and scheme in ('http', 'https') else ''


def _is_loopback_authority(authority: str) -> bool:
    try:
        return is_loopback(urlsplit(f'//{authority}').hostname or '')
    except ValueError:
        return False


def _token_of(target: str) -> str | None:
    path, _, query = target.partition('?')
    try:
        given = parse_qs(query, max_num_fields=8).get('token', [])
    except ValueError:
        return None
    return given[0] if path == '/' and len(given) == 1 else None


def _cookies(headers: dict[str, str], name: str) -> list[str]:
    pairs = (pair.strip().partition('=') for pair in headers.get('cookie', '').split(';'))
    return [value for key, _, value in pairs if key == name]


def _same(one: str, other: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(one.encode('utf-8', 'replace'), other.encode())


def _payload_length(head: bytes) -> int | None:
    """Return the number of bytes after the head of a frame; None if the head is incomplete."""
    if len(head) < 2:
        return None
    short = head[1] & 0x7F
    wide = {126: 2, 127: 8}.get(short, 0)
    mask = 4 if head[1] & 0x80 else 0
    if len(head) < 2 + wide + mask:
        return None
    return int.from_bytes(head[2 : 2 + wide], 'big') if wide else short
