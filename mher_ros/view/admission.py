"""Who may open the page: the rules, without a socket."""

from __future__ import annotations

import hmac
import ipaddress
import re
from urllib.parse import parse_qs, urlsplit

from mher_ros.options import OptionError

__all__ = [
    'Admission',
    'check_host',
    'done',
    'FRAMING',
    'is_loopback',
    'refusal',
    'STOP_PATH',
    'STOP_REQUEST',
]

STOP_PATH = '/stop'
STOP_REQUEST = f'POST {STOP_PATH} '.encode()
"""How a request to stop the arm begins."""
FRAMING = b"Content-Security-Policy: frame-ancestors 'none'\r\n"
"""The header that keeps other pages from showing this one, and so from steering clicks."""

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
            'token as well, of at least 8 characters, which the address of the page then holds'
        )


def is_loopback(host: str) -> bool:
    """Return whether only programs on this machine reach ``host``."""
    try:
        return host == 'localhost' or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Admission:
    """
    Answers a request from its head, or lets it through to the page.

    A browser runs what any site tells it to, so a request from this machine is not yet one by the
    person who sits there. Three headers, which a site cannot forge, tell: ``Origin`` (a script of
    another site), ``Host`` (another site's name that was made to point here) and
    ``Sec-Fetch-Dest`` (the page as a frame of another one, which could steer the clicks).
    """

    def __init__(self, token: str, port: int, takes_stop: bool = False) -> None:
        """``takes_stop``: let through what asks to stop the arm, too."""
        self._token, self._takes_stop = token, takes_stop
        # A browser sends a cookie to every port of a host: the name says whose it is, and the
        # value does not give the token away to the others.
        self._cookie = f'mher_view_{port}'
        self._pass = hmac.new(token.encode(), b'mher_ros view', 'sha256').hexdigest()

    def answer(self, head: bytes) -> bytes | None:
        """Return the reply to the request that begins with ``head``; None: let it through."""
        request = _read(head)
        if request is None:
            return refusal('400 Bad Request', 'This is not a request for a page.')
        method, target, headers = request
        host = headers['host']
        if method != 'GET' and not (self._takes_stop and (method, target) == ('POST', STOP_PATH)):
            return refusal('405 Method Not Allowed', 'This page is only there to be read.')
        if 'origin' in headers and _authority(headers['origin']) != host.lower():
            return refusal('403 Forbidden', 'Another page may not use this one.')
        if headers.get('sec-fetch-dest') in _FRAMES:
            return refusal('403 Forbidden', 'This page is not shown inside another one.')
        if not self._token:
            if _is_loopback_authority(host):
                return None
            return refusal('403 Forbidden', 'This page is open on its own machine only.')
        given = _token_of(target)
        if given is not None and _same(given, self._token):
            return _reply(
                '302 Found',
                '',
                'Location: /',
                f'Set-Cookie: {self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Strict',
            )
        if any(_same(value, self._pass) for value in _cookies(headers, self._cookie)):
            return None
        # A browser that came here by a link of another site holds back the cookie that it was just
        # given; the link on this page brings it.
        return refusal(
            '401 Unauthorized',
            'This page needs its token: open the address that was printed when it was started, '
            'with ?token= in it. If you have just done that, <a href="/">open the page</a>.',
        )


def done() -> bytes:
    """Return the reply that leaves a browser on the page where it is."""
    return _reply('204 No Content', '')


def refusal(status: str, sentence: str) -> bytes:
    """Return a reply that says, in HTML, why there is no page."""
    return _reply(status, f'<!doctype html><title>{status}</title><p>{sentence}</p>\n')


def _reply(status: str, body: str, *headers: str) -> bytes:
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
    """Return the host and port of an origin, '' of one that has none, such as ``null``."""
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
    """Compare in a time that does not tell how much of the two is the same."""
    return hmac.compare_digest(one.encode('utf-8', 'replace'), other.encode())
