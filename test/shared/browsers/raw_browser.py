"""A browser as the server sees it: a websocket that speaks viser's protocol, well or badly."""

from http.client import HTTPConnection
from urllib.parse import urlsplit

import msgspec
import viser
from websockets.sync.client import connect
import zstandard


class RawBrowser:
    """One that draws nothing, so that there can be many; it is connected while it is entered."""

    def __init__(self, address, edition=0):
        """``edition``: of the page whose handle it drags, whatever the page has by now."""
        self.address = address
        self.handle_name = f'/goal_{edition}'
        self._socket = connect(
            address.replace('http', 'ws'),
            subprotocols=[f'viser-v{viser.__version__}'],
            max_size=None,
            # As a browser does, it takes all that it is told; one that did not would not hear
            # either that it may close, and wait for that.
            max_queue=None,
        )

    def __enter__(self):
        # A browser counts once it has told of its camera.
        self.tell(
            'ViewerCameraMessage',
            wxyz=(1.0, 0.0, 0.0, 0.0),
            position=(1.0, 1.0, 1.0),
            fov=1.0,
            near=0.1,
            far=100.0,
            image_height=100,
            image_width=100,
            look_at=(0.0, 0.0, 0.0),
            up_direction=(0.0, 0.0, 1.0),
        )
        return self

    def __exit__(self, *_):
        self._socket.close()

    def start(self):
        """Take the goal's handle in hand."""
        self.tell('TransformControlsDragStartMessage', name=self.handle_name)

    def move(self, position, wxyz=(1.0, 0.0, 0.0, 0.0)):
        """Drag the handle there."""
        self.tell(
            'TransformControlsUpdateMessage', name=self.handle_name, wxyz=wxyz, position=position
        )

    def end(self):
        """Let it go."""
        self.tell('TransformControlsDragEndMessage', name=self.handle_name)

    def tell(self, kind, **fields):
        self.send(msgspec.msgpack.encode({'type': kind, **fields}))

    def send(self, raw):
        self._socket.send(raw)

    def post(self, path):
        """Return the status of the answer to a request that takes no websocket."""
        host = urlsplit(self.address).netloc
        connection = HTTPConnection(host, timeout=60)
        try:
            connection.request('POST', path, headers={'Origin': f'http://{host}'})
            return connection.getresponse().status
        finally:
            connection.close()

    def words(self, patience):
        """Return the next message to browsers, whatever can be read in it."""
        raw = self._socket.recv(patience)
        whole, packed = (int.from_bytes(raw[at : at + 8], 'little') for at in (0, 8))
        return zstandard.ZstdDecompressor().decompress(raw[16 : 16 + packed], whole)
