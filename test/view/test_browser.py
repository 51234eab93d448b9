import contextlib
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import threading

from browser import project, wait_for
from mher_ros.view.live_page import Button, Line, LivePage
from mher_ros.view.scene import set_stage
from mher_ros.view.server import PageServer
import numpy as np
import pytest
import viser

TOKEN = 'a-secret.word'

pytestmark = pytest.mark.slow


@pytest.fixture
def page():
    """Return a page that is empty but for its lights."""
    server = PageServer(port=0)
    set_stage(server.viser)
    yield server
    server.close()


def camera_of(server):
    """Return the camera of the one browser, once it has one."""
    clients = wait_for(server.viser.get_clients, what='a browser')
    return next(iter(clients.values())).camera


def red_pixels(window):
    """Return the pixels (n, 2) of the red box."""
    picture = window.picture()
    red, others = picture[..., 0], picture[..., 1:].max(axis=-1)
    return np.argwhere((red > 100) & (others < 0.4 * red))[:, ::-1]


def is_drawn_at(window, camera, point):
    red = red_pixels(window)
    return len(red) > 100 and np.allclose(red.mean(axis=0), project(camera, point), atol=4)


def test_a_box_is_drawn_and_seen_to_move(page, browser):
    box = page.viser.scene.add_box(
        '/box', color=(255, 0, 0), dimensions=(0.3, 0.3, 0.3), position=(0.5, -0.3, 0.1)
    )
    with browser.open(page.address) as window:
        camera = camera_of(page)
        wait_for(lambda: is_drawn_at(window, camera, box.position), what='the box')
        before = window.picture()
        box.position = (-0.5, 0.6, 0.3)
        wait_for(lambda: is_drawn_at(window, camera, box.position), what='the box elsewhere')
        assert (window.picture() != before).any(axis=-1).sum() > 200


@pytest.mark.parametrize('axis', range(3))
def test_the_mouse_drags_a_handle_along_an_axis(page, browser, axis):
    let_go = threading.Event()
    handle = page.viser.scene.add_transform_controls(
        '/goal', scale=0.5, disable_rotations=True, position=(0.1, 0.2, 0.3)
    )
    handle.on_update(lambda event: event.phase == 'end' and let_go.set())
    start, arrow = handle.position.copy(), np.eye(3)[axis]
    with browser.open(page.address) as window:
        camera = camera_of(page)
        wait_for(lambda: is_coloured(window, project(camera, start + 0.3 * arrow)))
        window.drag(
            project(camera, start + 0.3 * arrow), project(camera, start + (0.3 + 0.25) * arrow)
        )
        assert let_go.wait(20)
    assert handle.position - start == pytest.approx(0.25 * arrow, abs=0.01)


def is_coloured(window, pixel):
    """Return whether something with a colour is drawn at ``pixel``."""
    x, y = pixel.astype(int)
    around = window.picture()[y - 2 : y + 3, x - 2 : x + 3]
    return around.size and np.ptp(around, axis=-1).max() > 60


def test_the_address_with_its_token_opens_the_page_and_no_other_does(browser):
    with contextlib.closing(PageServer(port=0, token=TOKEN)) as page:
        with browser.open(page.address.partition('?')[0]) as window:
            assert 'needs its token' in window.text()
            assert not page.viser.get_clients()
        with browser.open(page.address) as window:
            wait_for(page.viser.get_clients, what='a browser')
            assert window.evaluate('location.href') == page.address.partition('?')[0]
            assert TOKEN not in window.evaluate('document.cookie')


def test_a_browser_whose_window_closes_is_gone(page, browser):
    with browser.open(page.address):
        wait_for(page.viser.get_clients, what='a browser')
    wait_for(lambda: not page.viser.get_clients(), what='it to go')


OPEN = """new Promise(tell => {{
    const socket = new WebSocket('ws://127.0.0.1:{port}', 'viser-v{version}');
    socket.onopen = () => tell('opened');
    socket.onerror = () => tell('refused');
}})"""


def test_another_site_in_the_same_browser_can_neither_open_nor_frame_it(page, browser):
    script = OPEN.format(port=page.port, version=viser.__version__)
    with browser.open(page.address) as window:
        assert window.evaluate(script) == 'opened'
    with another_site(f'<iframe src="{page.address}"></iframe>') as site:
        for address in site:
            with browser.open(address) as window:
                assert window.evaluate(script) == 'refused'
                # The browser shows nothing of it in a frame, by the page's frame-ancestors.
                assert 'Stop' not in window.framed_text()
    assert not page.viser.get_clients()


@contextlib.contextmanager
def another_site(content):
    """Serve ``content`` to whoever asks; give addresses near to and far from that of the page."""
    server = ThreadingHTTPServer(('127.0.0.1', 0), partial(Site, content))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield [f'http://{host}:{server.server_port}/' for host in ('127.0.0.1', 'localhost')]
    finally:
        server.shutdown()
        server.server_close()


class Site(BaseHTTPRequestHandler):
    def __init__(self, content, *args):
        self._content = content.encode()
        super().__init__(*args)

    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(self._content)

    def log_message(self, *_):
        pass


def test_markup_in_words_of_other_nodes_is_shown_and_not_obeyed(browser):
    evil = '<img src="x" onerror="document.title=\'evil\'"><b id="evil">words</b>'
    server = PageServer(port=0)
    live = LivePage(server.viser)
    live.say([Line('Arm', evil), Line(evil, 'a line', True)])
    live.curves.show(np.array([[100.0, 0.5, 0.1], [200.0, 0.6, 0.1]]), evil)
    try:
        with browser.open(server.address) as window:
            wait_for(server.viser.get_clients, what='a browser')
            live.notify(evil, evil)
            wait_for(lambda: window.text().count('<b id="evil">words</b>') >= 4, what='the words')
            assert window.evaluate("document.querySelector('#evil')") is None
            assert window.evaluate('document.title') != 'evil'
    finally:
        server.close()


def test_the_stop_button_leaves_the_page_where_it_is(browser):
    stopped = threading.Event()
    server = PageServer(port=0, stop=stopped.set)
    live = LivePage(server.viser)
    live.offer([Button.STOP])
    try:
        with browser.open(server.address) as window:
            wait_for(lambda: Button.STOP.value in window.text(), what='the button')
            window.press(Button.STOP.value)
            assert stopped.wait(20)
            live.say([Line('Arm', 'is still shown')])
            wait_for(lambda: 'is still shown' in window.text(), what='the page')
    finally:
        server.close()
