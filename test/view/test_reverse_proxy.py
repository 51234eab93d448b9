import contextlib
import io
import os
import socket
import subprocess
import sys
import threading
import time

from mher_ros.errors import MherError
from mher_ros.options import OptionError
from mher_ros.view import reverse_proxy
from mher_ros.view.access_control import check_host
from mher_ros.view.reverse_proxy import ReverseProxy
from mher_ros.view.server import PageServer, warning_of
import msgspec
import pytest
import viser
from viser._messages import FileTransferPart
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

TOKEN = 'a-secret.word'
VISER = f'viser-v{viser.__version__}'


@pytest.fixture(scope='module')
def page():
    """Return a page for this machine, without a token."""
    server = PageServer(port=0)
    yield server
    server.close()


@pytest.fixture(scope='module')
def guarded():
    """Return a page that asks for a token."""
    server = PageServer(port=0, token=TOKEN)
    yield server
    server.close()


class Stoppable:
    """A page from which the arm can be stopped."""

    def __init__(self):
        self.stops = 0
        self.server = PageServer(port=0, stop=self._stop)

    def _stop(self):
        self.stops += 1


@pytest.fixture
def stoppable():
    """Return a page of this machine that counts how often the arm was stopped."""
    stoppable = Stoppable()
    yield stoppable
    stoppable.server.close()


def head(target='/', host='localhost', **headers):
    lines = [f'GET {target} HTTP/1.1', f'Host: {host}']
    lines += [f'{name.replace("_", "-")}: {value}' for name, value in headers.items()]
    return '\r\n'.join([*lines, '', '']).encode()


def ask(server, request, port=None):
    """Return all that comes back for the bytes ``request``."""
    with socket.create_connection(('127.0.0.1', port or server.port), timeout=60) as connection:
        connection.sendall(request)
        return read_all(connection)


def read_all(connection):
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b''.join(parts)


def status(reply):
    return int(reply.split(b' ', 2)[1]) if reply else None


def cookie_of(server, token=TOKEN):
    reply = ask(server, head(f'/?token={token}')).decode()
    return reply.partition('Set-Cookie: ')[2].partition(';')[0]


def websocket(server, host='localhost', subprotocol=VISER, **options):
    connection = socket.create_connection(('127.0.0.1', server.port), timeout=60)
    address = f'ws://{host}:{server.port}'
    return connect(
        address, sock=connection, subprotocols=[subprotocol], max_size=None, proxy=None, **options
    )


def assert_serves(server, **options):
    """Fail unless the page is handed out and a websocket gets viser's first messages."""
    assert status(ask(server, head())) == 200
    with websocket(server, **options) as client:
        assert client.recv(timeout=60)


def test_the_page_and_its_websocket_come_through(page):
    reply = ask(page, head())
    assert reply.endswith(b'</html>\n') or reply.rstrip().endswith(b'</html>')
    length = int(reply.partition(b'Content-Length: ')[2].partition(b'\r\n')[0])
    assert len(reply.partition(b'\r\n\r\n')[2]) == length
    assert_serves(page)


@pytest.mark.parametrize('host', ['localhost', 'localhost:1234', '127.0.0.1:80', '[::1]:8080'])
def test_this_machine_goes_by_its_own_names(page, host):
    assert status(ask(page, head(host=host))) == 200


@pytest.mark.parametrize(
    'host',
    ['evil.example', 'localhost.evil.example', '192.168.0.7:80', 'localhost@evil:80', '['],
)
def test_a_name_made_to_point_here_is_refused(page, host):
    assert status(ask(page, head(host=host))) == 403


@pytest.mark.parametrize(
    'origin', ['http://evil.example', 'null', 'http://localhost:1', 'http://127.0.0.1', '', 'x']
)
def test_another_page_cannot_open_the_websocket(page, guarded, origin):
    assert status(ask(page, head(Origin=origin))) == 403
    with pytest.raises(InvalidStatus) as refused:
        websocket(page, origin=origin or ' ')
    assert refused.value.response.status_code == 403
    known = head(Origin=origin, Cookie=cookie_of(guarded))
    assert status(ask(guarded, known)) == 403


def test_the_page_itself_can_open_the_websocket(page):
    assert_serves(page, origin=f'http://localhost:{page.port}')


def test_the_page_is_no_frame_of_another(page):
    assert status(ask(page, head(Sec_Fetch_Dest='iframe'))) == 403
    assert status(ask(page, head(Sec_Fetch_Dest='document'))) == 200


def test_two_hosts_in_one_request_are_refused(page):
    assert status(ask(page, head(Host='evil.example'))) == 400
    assert status(ask(page, head(Origin='http://localhost', origin='http://evil.example'))) == 400


def test_the_token_in_the_address_becomes_a_cookie(guarded):
    reply = ask(guarded, head(f'/?token={TOKEN}', host='robot.lan')).decode()
    assert reply.startswith('HTTP/1.1 302 ')
    assert '\r\nLocation: /\r\n' in reply
    assert '; HttpOnly; SameSite=Strict\r\n' in reply
    assert f'mher_view_{guarded.port}=' in reply
    assert TOKEN not in reply
    cookie = cookie_of(guarded)
    assert status(ask(guarded, head(host='robot.lan', Cookie=f'a=1; {cookie}; b=2'))) == 200
    with websocket(guarded, additional_headers={'Cookie': cookie}) as client:
        assert client.recv(timeout=60)
    assert guarded.address == f'http://127.0.0.1:{guarded.port}/?token={TOKEN}'


@pytest.mark.parametrize(
    'request_',
    [
        head(),
        head('/?token='),
        head('/?token=a-secret.worse'),
        head(f'/?token={TOKEN[:-1]}'),
        head(f'/?token={TOKEN}&token={TOKEN}'),
        head('/?token=%ff%00%F0%9F'),
        head('/?' + '&'.join('token=a' for _ in range(500))),
        head(f'/index.html?token={TOKEN}'),
        head(Cookie='mher_view=x'),
        head(Cookie=f'token={TOKEN}'),
        head(Authorization=f'Bearer {TOKEN}'),
    ],
)
def test_without_the_token_nothing_comes_through(guarded, request_):
    reply = ask(guarded, request_)
    assert status(reply) == 401
    assert b'?token=' in reply


def test_a_wrong_cookie_opens_nothing(guarded):
    name = cookie_of(guarded).partition('=')[0]
    for value in ('', 'x', TOKEN, '\xe9\xff'):
        request = head().replace(
            b'\r\n\r\n', f'\r\nCookie: {name}={value}\r\n\r\n'.encode('latin-1')
        )
        assert status(ask(guarded, request)) == 401
    with pytest.raises(InvalidStatus) as refused:
        websocket(guarded, additional_headers={'Cookie': f'{name}=x'})
    assert refused.value.response.status_code == 401


def test_the_cookie_of_another_page_opens_nothing(guarded):
    with contextlib.closing(PageServer(port=0, token='another.secret')) as other:
        name = cookie_of(guarded).partition('=')[0]
        value = cookie_of(other, 'another.secret').partition('=')[2]
        assert status(ask(guarded, head(Cookie=f'{name}={value}'))) == 401
        assert status(ask(guarded, head(Cookie=cookie_of(other, 'another.secret')))) == 401


@pytest.mark.parametrize(
    'garbage',
    [
        b'\r\n\r\n',
        b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
        b'GET / HTTP/1.0\r\nHost: localhost\r\n\r\n',
        b'GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n',
        b'GET / HTTP/1.1\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: localhost\nOrigin: http://evil.example\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost : localhost\r\n\r\n',
        b'GET / HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n',
        bytes(range(256)) + b'\r\n\r\n',
    ],
)
def test_garbage_is_answered_and_others_go_on(page, garbage):
    assert status(ask(page, garbage)) == 400
    assert_serves(page)


def test_only_reading_is_possible(page):
    assert status(ask(page, head().replace(b'GET', b'POST'))) == 405


def test_a_head_without_end_is_cut_off(page):
    assert ask(page, b'GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + b'a' * 100_000) == b''
    assert_serves(page)


def test_a_slow_head_is_cut_off_while_others_go_on(page, monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'HEAD_TIME', 0.2)
    with socket.create_connection(('127.0.0.1', page.port), timeout=60) as slow:
        slow.sendall(b'GET / HT')
        assert_serves(page)
        assert read_all(slow) == b''


def test_a_browser_that_takes_nothing_is_cut_off(monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'STALLED_TIME', 0.2)
    with (
        endless_backend() as backend,
        contextlib.closing(ReverseProxy('127.0.0.1', 0, '', backend)) as proxy,
    ):
        with socket.create_connection(('127.0.0.1', proxy.port), timeout=60) as idle:
            idle.sendall(head())
            assert backend.lost.wait(20)


class Backend(tuple):
    """The address of a server that sends without end; ``lost`` is set when it no longer can."""

    lost: threading.Event


@contextlib.contextmanager
def endless_backend():
    with socket.create_server(('127.0.0.1', 0)) as listener:
        backend = Backend(listener.getsockname())
        backend.lost = threading.Event()

        def send():
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                while True:
                    connection.sendall(bytes(65536))
            backend.lost.set()

        threading.Thread(target=send, daemon=True).start()
        yield backend


def test_one_connection_carries_one_request(page):
    first, second = head(), head(Origin='http://evil.example', X_Second='yes')
    assert ask(page, first + second).count(b'HTTP/1.1 200') <= 1
    with socket.create_connection(('127.0.0.1', page.port), timeout=60) as connection:
        connection.sendall(first)
        reply = read_all(connection)
        assert reply.count(b'HTTP/1.1 200') == 1
        with contextlib.suppress(ConnectionError):
            connection.sendall(second)
            assert connection.recv(1) == b''


def test_a_browser_that_breaks_off_is_gone_for_viser_too(page):
    gone = threading.Event()
    page.viser.on_client_disconnect(lambda _: gone.set())
    client = websocket(page)
    client.send(camera_message())
    wait_until(lambda: page.viser.get_clients())
    client.socket.shutdown(socket.SHUT_RDWR)
    assert gone.wait(10)
    wait_until(lambda: not page.viser.get_clients())


def camera_message(**changes):
    message = {
        'type': 'ViewerCameraMessage',
        'wxyz': (1.0, 0.0, 0.0, 0.0),
        'position': (1.0, 0.0, 0.0),
        'fov': 1.0,
        'near': 0.01,
        'far': 100.0,
        'image_height': 10,
        'image_width': 10,
        'look_at': (0.0, 0.0, 0.0),
        'up_direction': (0.0, 0.0, 1.0),
    }
    return msgspec.msgpack.encode({**message, **changes})


def wait_until(condition, timeout=60.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)


def test_two_hundred_connections_at_once_are_all_answered(page):
    connections = [socket.create_connection(('127.0.0.1', page.port), 30) for _ in range(200)]
    for connection in connections:
        connection.sendall(head())
    for connection in connections:
        with connection:
            assert status(read_all(connection)) == 200
    assert_serves(page)


def test_there_is_an_end_to_how_many_may_watch(monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'MOST_ADMITTED', 3)
    with contextlib.closing(PageServer(port=0)) as page:
        watching = [websocket(page) for _ in range(3)]
        assert status(ask(page, head())) == 503
        watching.pop().close()
        wait_until(lambda: status(ask(page, head())) == 200)
        for client in watching:
            client.close()


def test_a_page_of_another_version_is_sent_away(page):
    with websocket(page, subprotocol='viser-v0.0.1') as client:
        with pytest.raises(ConnectionClosed):
            client.recv(timeout=60)
    assert_serves(page)


@pytest.mark.parametrize(
    'frame',
    [
        b'',
        b'\xc1',
        'text',
        b'\x00' * 100_000,
        msgspec.msgpack.encode({'type': 'NoSuchMessage'}),
        msgspec.msgpack.encode({'type': 'ViewerCameraMessage'}),
        msgspec.msgpack.encode([1, 2, 3]),
        b'\x91' * 100_000,
    ],
)
def test_garbage_over_the_websocket_ends_that_websocket_alone(page, frame):
    with websocket(page) as other:
        with websocket(page) as client:
            client.send(frame)
            with pytest.raises(ConnectionClosed):
                while True:
                    client.recv(timeout=60)
        page.viser.scene.add_frame('/still_there')
        assert other.recv(timeout=60)
    assert_serves(page)


def test_messages_with_wrong_values_hurt_nobody(page):
    with websocket(page) as client:
        for message in (
            camera_message(position='garbage'),
            camera_message(wxyz=(float('nan'),) * 7),
            msgspec.msgpack.encode({'type': 'GuiUpdateMessage', 'uuid': 'x', 'updates': 3}),
            msgspec.msgpack.encode({'type': 'GuiCloseModalMessage', 'uuid': None}),
            msgspec.msgpack.encode({'type': 'RemoveSceneNodeMessage', 'name': '/'}),
        ):
            with contextlib.suppress(ConnectionClosed):
                client.send(message)
    assert_serves(page)


def test_raw_garbage_instead_of_frames_ends_that_websocket_alone(page):
    upgrade = head(
        Upgrade='websocket',
        Connection='Upgrade',
        Sec_WebSocket_Key='dGhlIHNhbXBsZSBub25jZQ==',
        Sec_WebSocket_Version='13',
        Sec_WebSocket_Protocol=VISER,
    )
    with socket.create_connection(('127.0.0.1', page.port), timeout=60) as connection:
        connection.sendall(upgrade)
        assert status(connection.recv(65536)) == 101
        with contextlib.suppress(ConnectionError):
            connection.sendall(os.urandom(50_000))
        read_all(connection)
    assert_serves(page)


def test_no_browser_can_have_the_page_opened_to_the_internet(page, monkeypatch):
    tunnels = []
    monkeypatch.setattr('viser._viser.ViserTunnel', lambda *args: tunnels.append(args))
    with websocket(page) as client:
        client.send(msgspec.msgpack.encode({'type': 'ShareUrlRequest'}))
        client.send(camera_message())
        wait_until(lambda: page.viser.get_clients())
    assert page.viser.request_share_url() is None
    page.viser._thread_executor.submit(lambda: None).result(10)
    assert tunnels == []


def test_the_server_behind_is_not_at_an_address_to_be_guessed(page):
    assert page.viser.get_host().startswith('127.')
    with pytest.raises(ConnectionError):
        ask(page, head(), port=page.viser.get_port())


def test_a_lost_server_is_said_and_the_gate_goes_on():
    with contextlib.closing(ReverseProxy('127.0.0.1', 0, '', ('127.0.0.1', free_port()))) as proxy:
        assert status(ask(proxy, head())) == 502
        assert status(ask(proxy, head())) == 502


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as probe:
        return probe.getsockname()[1]


def test_a_taken_port_is_counted_up(page):
    with contextlib.closing(PageServer(port=page.port)) as second:
        assert page.port < second.port <= page.port + 20
        assert_serves(second)


def test_an_address_that_is_not_ours_is_named():
    with pytest.raises(MherError, match=r'192\.0\.2\.1, port 8080'):
        PageServer('192.0.2.1', 8080, TOKEN)
    with pytest.raises(MherError, match='no.such.host.invalid'):
        PageServer('no.such.host.invalid', 8080, TOKEN)


def test_no_free_port_is_said(monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'PORTS_TRIED', 1)
    with socket.create_server(('127.0.0.1', 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MherError, match=f'127.0.0.1 from {port} to {port}'):
            PageServer(port=port)


@pytest.mark.skipif(not os.path.exists('/proc/net/if_inet6'), reason='this machine has no IPv6')
def test_ipv6_is_served_too():
    with contextlib.closing(PageServer('::1', 0)) as page:
        assert page.address == f'http://[::1]:{page.port}/'
        with socket.create_connection(('::1', page.port), timeout=60) as connection:
            connection.sendall(head(host=f'[::1]:{page.port}'))
            assert status(read_all(connection)) == 200


def test_closing_sends_all_away_and_frees_the_port():
    page = PageServer(port=0)
    client = websocket(page)
    client.recv(timeout=60)
    page.close()
    with pytest.raises(ConnectionClosed):
        while True:
            client.recv(timeout=60)
    page.close()
    with contextlib.closing(PageServer(port=page.port)) as again:
        assert again.port == page.port


def test_starting_and_closing_prints_nothing(capfd):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        PageServer(port=0).close()
    assert printed.getvalue() == ''
    assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('host', ['0.0.0.0', '::', '', '192.168.0.7', 'robot.lan', 'localhost.x'])
def test_the_network_needs_a_token(host):
    with pytest.raises(OptionError, match='token'):
        check_host(host, '')
    check_host(host, TOKEN)
    assert 'can move the arm' in warning_of(host)


@pytest.mark.parametrize('host', ['localhost', '127.0.0.1', '127.1.2.3', '::1'])
def test_this_machine_needs_none(host):
    check_host(host, '')
    assert warning_of(host) == ''


@pytest.mark.parametrize('token', ['short', 'with space', 'with/slash', 'a&b=c#de', 'ünïcödés'])
def test_a_token_that_can_be_guessed_or_not_be_typed_is_refused(token):
    with pytest.raises(OptionError, match='token takes at least 8') as refused:
        check_host('127.0.0.1', token)
    assert token not in str(refused.value)


# The arm is stopped by a request of its own


def stop_request(path='/stop', **headers):
    return head(path, Content_Length=0, **headers).replace(b'GET', b'POST', 1)


def test_a_stop_leaves_the_browser_where_it_is(stoppable):
    origin = f'http://localhost:{stoppable.server.port}'
    request = stop_request(host=f'localhost:{stoppable.server.port}', Origin=origin)
    assert status(ask(stoppable.server, request)) == 204
    assert stoppable.stops == 1


@pytest.mark.parametrize(
    ('request_', 'answer'),
    [
        (stop_request(Origin='http://evil.example'), 403),
        (stop_request(host='evil.example'), 403),
        (stop_request('/'), 405),
        (stop_request('/stop?x'), 405),
        (head('/stop'), 404),
        (stop_request().replace(b'POST', b'PUT', 1), 405),
    ],
)
def test_nothing_else_stops_the_arm(stoppable, request_, answer):
    assert status(ask(stoppable.server, request_)) == answer
    assert not stoppable.stops


def test_a_stop_needs_the_token_where_there_is_one():
    stops = []
    server = PageServer(port=0, token=TOKEN, stop=lambda: stops.append(True))
    try:
        assert status(ask(server, stop_request())) == 401
        assert not stops
        assert status(ask(server, stop_request(Cookie=cookie_of(server)))) == 204
        assert stops == [True]
    finally:
        server.close()


def test_a_page_without_an_arm_takes_no_stop(page):
    assert status(ask(page, stop_request())) == 405


def test_a_stop_that_goes_wrong_says_so():
    server = PageServer(port=0, stop=lambda: 1 / 0)
    try:
        assert status(ask(server, stop_request())) == 500
        assert_serves(server)
    finally:
        server.close()


def test_a_stop_is_taken_where_nobody_else_is_let_in(stoppable, monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'MOST_ADMITTED', 1)
    with websocket(stoppable.server) as client:
        assert client.recv(timeout=10)
        assert status(ask(stoppable.server, head())) == 503
        assert status(ask(stoppable.server, stop_request())) == 204
    assert stoppable.stops == 1


def test_every_answer_forbids_frames(page):
    for request in (head(), head('/nothing'), head(host='evil.example'), b'x\r\n\r\n'):
        answer = ask(page, request).partition(b'\r\n\r\n')[0].decode()
        assert "Content-Security-Policy: frame-ancestors 'none'" in answer


# Floods


def test_who_floods_is_sent_away_and_others_are_not(stoppable):
    server = stoppable.server
    with websocket(server) as other, websocket(server) as flooding:
        other.send(camera_message())
        with pytest.raises(ConnectionClosed):
            for _ in range(100_000):
                flooding.send(camera_message())
        assert status(ask(server, stop_request())) == 204
        other.send(camera_message())
        wait_until(lambda: len(server.viser.get_clients()) == 1)
        assert other.ping().wait(10)
    refused = 0
    for _ in range(10):  # who comes again and again does not get in each time
        try:
            websocket(server).close()
        except InvalidStatus as error:
            refused += error.response.status_code == 503
    assert refused


def test_a_message_that_no_page_sends_never_reaches_viser(page):
    seen = []
    page.viser._websock_server.register_handler(
        FileTransferPart, lambda client, message: seen.append(len(message.content))
    )
    part = {
        'type': 'FileTransferPart',
        'source_component_uuid': None,
        'transfer_uuid': 'x',
        'part_index': 0,
    }
    with websocket(page) as client, contextlib.suppress(ConnectionClosed):
        client.send(msgspec.msgpack.encode({**part, 'content': bytes(1000)}))
        wait_until(lambda: seen)
        client.send(msgspec.msgpack.encode({**part, 'content': bytes(1_000_000)}))
        while True:
            client.recv(timeout=10)
    assert seen == [1000]


HOLDER = """
import resource, select, socket, sys

resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
port, count, sent = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
held, poll = {}, select.poll()
while True:
    while len(held) < count:
        one = socket.create_connection(('127.0.0.1', port), 60)
        one.sendall(sent)
        held[one.fileno()] = one
        poll.register(one, select.POLLIN | select.POLLHUP)
    print('held', flush=True)
    for number, _ in poll.poll():
        try:
            lost = not held[number].recv(65536)
        except ConnectionError:
            lost = True
        if lost:
            poll.unregister(number)
            held.pop(number).close()
"""
"""Holds connections, and opens a new one for each that it loses."""


@contextlib.contextmanager
def held_connections(port, count, sent=''):
    """Have another process hold so many connections, on each of which it sends the same."""
    holder = subprocess.Popen(
        [sys.executable, '-c', HOLDER, str(port), str(count), sent],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout.readline() == 'held\n'
        threading.Thread(target=holder.stdout.read, daemon=True).start()
        yield
        assert holder.poll() is None
    finally:
        holder.kill()
        holder.wait()


@pytest.mark.parametrize(
    'sent',
    [
        pytest.param('', id='nothing'),
        pytest.param('GET / HT', id='half a head'),
        pytest.param('GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n', id='a refused request'),
    ],
)
def test_idle_connections_keep_out_neither_a_stop_nor_a_page(stoppable, sent):
    server = stoppable.server
    with websocket(server) as watching, held_connections(server.port, 400, sent):
        for _ in range(10):
            assert status(ask(server, stop_request())) == 204
            time.sleep(0.05)
        assert stoppable.stops == 10
        assert_serves(server)
        assert watching.ping().wait(60)  # whoever was let in stays


def test_idle_connections_are_bounded(stoppable):
    server, before = stoppable.server, len(os.listdir('/proc/self/fd'))
    with held_connections(server.port, 400):
        assert status(ask(server, stop_request())) == 204
        # Those that were accepted together may be there for a moment.
        assert len(os.listdir('/proc/self/fd')) < before + reverse_proxy.MOST_WAITING + 100


def test_who_waits_longest_gives_way(stoppable, monkeypatch):
    monkeypatch.setattr(reverse_proxy, 'MOST_WAITING', 2)
    with contextlib.ExitStack() as stack:
        first, second, third = (
            stack.enter_context(socket.create_connection(('127.0.0.1', stoppable.server.port), 60))
            for _ in range(3)
        )
        assert read_all(first) == b''
        for waiting in (second, third):
            waiting.sendall(stop_request())
            assert status(read_all(waiting)) == 204
    assert stoppable.stops == 2
